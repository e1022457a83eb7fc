// Waiting for what no page shows.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

/** Asks again and again until the answer is a yes, which it returns. */
export async function until(question, seconds = 30) {
  const deadline = Date.now() + seconds * 1000;
  for (;;) {
    const answer = await question();
    if (answer) return answer;
    assert.ok(Date.now() < deadline, `still not: ${question}`);
    await sleep(100);
  }
}
