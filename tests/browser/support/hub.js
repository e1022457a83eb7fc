// The hub that tests download from.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

export class Hub {
  static async start(folder) {
    const child = spawn(process.env.MACMLX_HUB_DOUBLE, [folder], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const hub = new Hub(child);
    for await (const line of createInterface({ input: child.stdout })) {
      hub.url = line.trim();
      break;
    }
    child.stdout.resume();
    if (!hub.url) throw new Error('the hub did not start');
    return hub;
  }

  constructor(child) {
    this.child = child;
  }

  async stop() {
    if (this.child.exitCode !== null) return;
    const ended = new Promise((resolve) => this.child.once('exit', resolve));
    this.child.kill('SIGTERM');
    await ended;
  }
}
