// Talking to a model on the chat screen.
import { fileURLToPath } from 'node:url';

/** The answers that are played. */
export const SCRIPT = fileURLToPath(new URL('../script.json', import.meta.url));

export async function ask(page, text) {
  await page.getByRole('textbox', { name: 'Message' }).fill(text);
  // It is there once there is a model to ask.
  await page.getByRole('button', { name: 'Send' }).click();
}

export function answers(page) {
  return page.getByRole('article', { name: 'Answer' });
}
