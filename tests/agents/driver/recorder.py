"""Stands between an agent and the server, passes their bytes on unchanged and keeps them."""

import socket
import threading

from driver import wire


class Connection:
    """One connection of the agent and the one to the server that mirrors it."""

    def __init__(self, client: socket.socket, upstream: socket.socket):
        self.sockets = (client, upstream)
        self.sent = bytearray()
        self.received = bytearray()
        for source, sink, copy in (
            (client, upstream, self.sent),
            (upstream, client, self.received),
        ):
            threading.Thread(target=self._pump, args=(source, sink, copy), daemon=True).start()

    @staticmethod
    def _pump(source: socket.socket, sink: socket.socket, copy: bytearray):
        try:
            while data := source.recv(65536):
                # Kept first: whoever reads the reply may ask for the copy at once.
                copy.extend(data)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            # One side has gone; the other must hear of it, as it would without us.
            for end in (source, sink):
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def close(self):
        for end in self.sockets:
            end.close()


class Recorder:
    """A port of this machine that behaves like the server behind it."""

    def __init__(self, upstream_port: int, port: int = 0):
        self.upstream_port = upstream_port
        self.connections: list[Connection] = []
        self.listener = socket.create_server(("127.0.0.1", port), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                upstream = socket.create_connection(("127.0.0.1", self.upstream_port))
            except OSError:
                client.close()
                continue
            self.connections.append(Connection(client, upstream))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def exchanges(self) -> list[wire.Exchange]:
        return [
            exchange
            for connection in self.connections
            for exchange in wire.exchanges(bytes(connection.sent), bytes(connection.received))
        ]

    def close(self):
        # Wakes the thread that waits in accept; closing alone would leave the port open.
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        for connection in self.connections:
            connection.close()
