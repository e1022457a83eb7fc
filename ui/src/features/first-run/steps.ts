/** The steps of the first run, and where a person stands who comes back. */
import type { DownloadJob } from '$lib/api';

export const STEPS = ['welcome', 'folder', 'model', 'server'] as const;
export type Step = (typeof STEPS)[number];

/**
 * The step of an address (`#/welcome/model`). An address without one means the beginning, except in
 * a first run that was interrupted: its download tells how far it came.
 */
export function stepOf(
  segment: string | undefined,
  jobs: Pick<DownloadJob, 'state'>[],
  isFirstRun: boolean,
): Step {
  const named = STEPS.find((step) => step === segment);
  if (named) return named;
  const job = isFirstRun ? jobs.find(({ state }) => state !== 'done') : undefined;
  if (!job) return 'welcome';
  // A failure wants a decision; everything else goes on by itself or with one button.
  return job.state === 'failed' ? 'model' : 'server';
}

export function nextStep(step: Step): Step | undefined {
  return STEPS[STEPS.indexOf(step) + 1];
}

export function previousStep(step: Step): Step | undefined {
  return STEPS[STEPS.indexOf(step) - 1];
}
