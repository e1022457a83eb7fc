"""Reads ONNX graphs whose products onnxruntime's dynamic quantization has made 8-bit.

Such a product is `MatMulInteger` of an activation that `DynamicQuantizeLinear` has just quantized and
a weight, `Cast` to float, and `Mul` by both scales.
"""

from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

QUANTIZED = "_quantized"


class Graph:
    """Initializers and consumers of one graph."""

    def __init__(self, path: Path):
        self.model = onnx.load(str(path))
        self.nodes = self.model.graph.node
        self.arrays = {
            tensor.name: numpy_helper.to_array(tensor) for tensor in self.model.graph.initializer
        }
        self.producer = {output: node for node in self.nodes for output in node.output}
        self.consumers: dict[str, list] = {}
        for node in self.nodes:
            for name in node.input:
                self.consumers.setdefault(name, []).append(node)

    def dequantized(self, name: str) -> np.ndarray:
        """The float matrix of `name`, scaled as a whole or by column."""
        value = self.arrays[name + QUANTIZED].astype(np.float32)
        zero = self.arrays[name + "_zero_point"].astype(np.float32)
        return (value - zero) * self.arrays[name + "_scale"]

    def products(self):
        """Each 8-bit product: its node, the weight's name, and the node with the float result."""
        for node in self.nodes:
            if node.op_type == "MatMulInteger":
                (cast,) = self.consumers[node.output[0]]
                (scaled,) = self.consumers[cast.output[0]]
                yield node, node.input[1].removesuffix(QUANTIZED), scaled

    def bias_after(self, node) -> str:
        """The bias that is added to what a node gives: it still has the name that the weight lost."""
        (add,) = self.consumers[node.output[0]]
        (bias,) = (name for name in add.input if name.endswith(".bias"))
        return bias


def float_weights(path: Path) -> dict[str, np.ndarray]:
    """All parameters in float32 under PyTorch's names and in its layout (`[outputs, inputs]`)."""
    graph = Graph(path)
    weights = {
        name: array
        for name, array in graph.arrays.items()
        if name.endswith((".weight", ".bias")) and array.dtype == np.float32
    }
    in_products = set()
    for _, weight, scaled in graph.products():
        in_products.add(weight)
        name = graph.bias_after(scaled).removesuffix(".bias") + ".weight"
        weights[name] = graph.dequantized(weight).T
    for key in graph.arrays:
        name = key.removesuffix(QUANTIZED)
        if name != key and name not in in_products:
            weights[name] = graph.dequantized(name)
    return weights


def float_model(path: Path) -> bytes:
    """The same graph with products in float32 of the dequantized weights: what the 8-bit products
    approximate, without the error of quantizing activations."""
    graph = Graph(path)
    drop, add = [], []
    for node, weight, scaled in graph.products():
        cast = graph.consumers[node.output[0]][0]
        activation = graph.producer[node.input[0]].input[0]
        matrix = numpy_helper.from_array(graph.dequantized(weight), weight + "_float")
        graph.model.graph.initializer.append(matrix)
        product = helper.make_node("MatMul", [activation, matrix.name], [scaled.output[0]])
        drop += [node, cast, scaled]
        add.append((scaled, product))
    # Nodes stay in the order in which they can be computed.
    replaced = {id(scaled): product for scaled, product in add}
    dropped = {id(node) for node in drop}
    nodes = [
        replaced.get(id(node), node)
        for node in graph.nodes
        if id(node) in replaced or id(node) not in dropped
    ]
    used = {name for node in nodes for name in node.input}
    initializers = [tensor for tensor in graph.model.graph.initializer if tensor.name in used]
    for field, values in (("node", nodes), ("initializer", initializers)):
        copies = [type(value).FromString(value.SerializeToString()) for value in values]
        getattr(graph.model.graph, field).clear()
        getattr(graph.model.graph, field).extend(copies)
    return graph.model.SerializeToString()
