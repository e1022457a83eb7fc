// The program: its home, one command, and a server that runs.
import { spawn, execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

const BINARY = process.env.MACMLX_BIN;

/** The model of tests whose answers are written. */
export const PLAYED_MODEL = 'test/qwen3-played';
/** The real one, that the engine runs. */
export const STARTER_MODEL = 'HuggingFaceTB/SmolLM2-135M-Instruct';

/** A data folder of its own, removed by `remove`. */
export class Home {
  static async make(settings = {}) {
    const folder = await mkdtemp(join(tmpdir(), 'macmlx-browser-'));
    const home = new Home(folder);
    await mkdir(home.data);
    await home.write('settings.json', settings);
    return home;
  }

  constructor(folder) {
    this.folder = folder;
    this.data = join(folder, 'data');
  }

  get environment() {
    const { PATH, LD_LIBRARY_PATH } = process.env;
    const kept = LD_LIBRARY_PATH ? { PATH, LD_LIBRARY_PATH } : { PATH };
    return { ...kept, HOME: this.folder, MACMLX_HOME: this.data };
  }

  async write(name, json) {
    await writeFile(join(this.data, name), JSON.stringify(json));
  }

  /** Puts the model whose answers are written where models are. */
  async addPlayedModel() {
    const folder = join(this.data, 'models', PLAYED_MODEL);
    await mkdir(folder, { recursive: true });
    await cp(process.env.MACMLX_PLAYBACK_MODEL, folder, { recursive: true });
  }

  async addStarterModel() {
    await this.run('import', process.env.MACMLX_STARTER_GGUF, '--name', STARTER_MODEL);
  }

  /** One command to its end; what it printed. */
  async run(...args) {
    const { stdout } = await promisify(execFile)(BINARY, args, { env: this.environment });
    return stdout;
  }

  async remove() {
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** A running `macmlx serve`. */
export class Server {
  static async start(home, ...args) {
    const child = spawn(BINARY, ['serve', '--json', '--port', '0', ...args], {
      env: home.environment,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const server = new Server(child);
    child.stderr.on('data', (chunk) => (server.errors += chunk));
    const ended = new Promise((resolve) => child.once('exit', resolve));
    for await (const line of createInterface({ input: child.stdout })) {
      const said = JSON.parse(line);
      server.url = said.url;
      server.uiUrl = said.ui_url;
      break;
    }
    if (!server.uiUrl) {
      await ended;
      throw new Error(`the server did not start:\n${server.errors}`);
    }
    child.stdout.resume();
    return server;
  }

  constructor(child) {
    this.child = child;
    this.errors = '';
  }

  get pid() {
    return this.child.pid;
  }

  get token() {
    return new URLSearchParams(new URL(this.uiUrl).hash.slice(1)).get('token');
  }

  /** A control route, asked past the UI. */
  async control(method, path, body) {
    const response = await fetch(this.url + path, {
      method,
      headers: { authorization: `Bearer ${this.token}`, 'content-type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text ? JSON.parse(text) : null;
  }

  /** Asks it to end; an end that is not clean is an error. */
  async stop() {
    const { child } = this;
    if (child.exitCode === null) {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGINT');
      await ended;
    }
    if (child.exitCode !== 0) {
      throw new Error(`the server ended with ${child.exitCode ?? child.signalCode}:\n${this.errors}`);
    }
  }

  /** Ends it as a crash or a power cut would. */
  async kill() {
    const ended = new Promise((resolve) => this.child.once('exit', resolve));
    this.child.kill('SIGKILL');
    await ended;
  }
}
