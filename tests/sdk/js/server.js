// The program, started for one file of tests, and what they ask it.

import { execFileSync, spawn } from "node:child_process";
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

export const MODEL = "test/qwen3-played";
export const STARTER = "test/starter-with-tools";
export const EMBEDDER = "sentence-transformers/all-MiniLM-L6-v2";
export const RERANKER = "cross-encoder/ms-marco-MiniLM-L-12-v2";
const SCRIPT = path.join(import.meta.dirname, "../script.json");
const TEMPLATE = path.join(import.meta.dirname, "../chatml_with_tools.jinja");
const START_MILLISECONDS = 180_000;

/**
 * Starts a server of written answers before the tests of a file and ends it after them. It is
 * strict, so that clients are seen to meet an unknown model.
 */
export function played(...options) {
  return serving(copyPlayed, "--playback", SCRIPT, "--unknown-models", "refuse", ...options);
}

/** As above, of the starter model, to which a template gives tools and reasoning. */
export function drawn(...options) {
  return serving(importStarter, "--model", STARTER, ...options);
}

/** As above, of real encoders. */
export function encoding(...options) {
  return serving(linkEncoders, ...options);
}

function linkEncoders(home) {
  for (const name of [EMBEDDER, RERANKER]) {
    const link = path.join(home, "data/models", name);
    mkdirSync(path.dirname(link), { recursive: true });
    symlinkSync(path.join(process.env.MACMLX_ENCODERS, name), link);
  }
}

function copyPlayed(home) {
  const model = path.join(home, "data/models", MODEL);
  mkdirSync(path.dirname(model), { recursive: true });
  cpSync(process.env.MACMLX_PLAYBACK_MODEL, model, { recursive: true });
}

function importStarter(home) {
  const gguf = process.env.MACMLX_STARTER_GGUF;
  execFileSync(process.env.MACMLX_BIN, ["import", gguf, "--name", STARTER], {
    env: environment(home),
  });
  copyFileSync(TEMPLATE, path.join(home, "data/models", STARTER, "chat_template.jinja"));
}

function serving(addModel, ...options) {
  const server = { url: "" };
  let child;
  let home;
  before(async () => {
    home = mkdtempSync(path.join(tmpdir(), "macmlx-sdk-"));
    addModel(home);
    child = spawn(process.env.MACMLX_BIN, ["serve", "--port", "0", ...options], {
      env: environment(home),
      stdio: ["ignore", "pipe", "pipe"],
    });
    server.url = await address(child);
  });
  after(async () => {
    const ended = new Promise((resolve) => child.once("exit", resolve));
    if (child.exitCode === null) {
      child.kill("SIGINT");
      await ended;
    }
    rmSync(home, { recursive: true, force: true });
  });
  return server;
}

/** No setting of the tester's leaks in. */
function environment(home) {
  const kept = Object.fromEntries(
    ["PATH", "LD_LIBRARY_PATH"]
      .filter((name) => process.env[name])
      .map((name) => [name, process.env[name]]),
  );
  return { ...kept, HOME: home, MACMLX_HOME: path.join(home, "data") };
}

async function address(child) {
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (data) => {
      output += data;
    });
  }
  const deadline = Date.now() + START_MILLISECONDS;
  while (Date.now() < deadline && child.exitCode === null) {
    const url = output.match(/http:\/\/127\.0\.0\.1:\d+/)?.[0];
    if (url && (await isHealthy(url))) return url;
    await sleep(50);
  }
  child.kill("SIGKILL");
  throw new Error(`the server did not start:\n${output}`);
}

async function isHealthy(url) {
  try {
    return (await fetch(`${url}/health`)).ok;
  } catch {
    return false;
  }
}
