/** What a download job says about itself, in numbers and words. */
import type { DownloadJob } from '$lib/api';
import { formatBytes, formatDuration, formatPercent, formatRate } from '$lib/i18n/format';
import { t } from '$lib/i18n/index.svelte';

const MOVING = ['queued', 'listing', 'downloading', 'verifying'];

/** Whether it goes on by itself. */
export function isMoving(job: Pick<DownloadJob, 'state'>): boolean {
  return MOVING.includes(job.state);
}

/** The part that is here, 0 to 1; null while the size is not known. */
export function share(job: Pick<DownloadJob, 'total_bytes' | 'done_bytes'>): number | null {
  if (job.total_bytes === null) return null;
  return job.total_bytes === 0 ? 1 : Math.min(1, job.done_bytes / job.total_bytes);
}

/** `1.2 GB of 4.3 GB · 28%`; the size alone when all is here. */
export function amountText(job: DownloadJob): string {
  const part = share(job);
  if (part === null || job.total_bytes === null || job.state === 'done')
    return job.done_bytes > 0 ? formatBytes(job.done_bytes) : '';
  const amount = t('models.amount', {
    done: formatBytes(job.done_bytes),
    total: formatBytes(job.total_bytes),
  });
  return `${amount} · ${formatPercent(part)}`;
}

/** `12 MB/s · 3 m 10 s left`, or what it is doing instead of receiving bytes. */
export function paceText(job: DownloadJob): string {
  if (job.state !== 'downloading') return t(`models.job.${job.state}`);
  if (job.bytes_per_second <= 0) return t('models.waitingForBytes');
  const pace = formatRate(job.bytes_per_second);
  if (job.eta_seconds === null) return pace;
  return `${pace} · ${t('models.left', { time: formatDuration(job.eta_seconds) })}`;
}

/** The job of a model that matters: one that is under way or waits before one that is done. */
export function jobOf(jobs: DownloadJob[], model: string): DownloadJob | undefined {
  const own = jobs.filter((job) => job.model === model);
  return own.find((job) => job.state !== 'done') ?? own[0];
}
