// The hub that tests download from, with a real model.
import { spawn } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { Home, STARTER_MODEL } from './program.js';

export class Hub {
  /** A hub with the starter model under these names. */
  static async withStarter(...names) {
    const home = await Home.make();
    await home.addStarterModel();
    const folder = await mkdtemp(join(tmpdir(), 'macmlx-hub-'));
    for (const name of names) {
      await mkdir(dirname(join(folder, name)), { recursive: true });
      await cp(join(home.data, 'models', STARTER_MODEL), join(folder, name), { recursive: true });
    }
    await home.remove();
    const child = spawn(process.env.MACMLX_HUB_DOUBLE, [folder], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const hub = new Hub(child, folder);
    for await (const line of createInterface({ input: child.stdout })) {
      hub.url = line.trim();
      break;
    }
    child.stdout.resume();
    if (!hub.url) throw new Error('the hub did not start');
    return hub;
  }

  constructor(child, folder) {
    this.child = child;
    this.folder = folder;
  }

  /** Misbehaves like this from now on; nothing is a hub that works. */
  async behave(behaviour) {
    const response = await fetch(`${this.url}/double/behaviour`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(behaviour),
    });
    if (!response.ok) throw new Error(await response.text());
  }

  async stop() {
    if (this.child.exitCode === null) {
      const ended = new Promise((resolve) => this.child.once('exit', resolve));
      this.child.kill('SIGINT');
      await ended;
    }
    await rm(this.folder, { recursive: true, force: true });
  }
}
