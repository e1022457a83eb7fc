/** What kept the hub from answering, in a few words of the person's language. */
import { ApiError } from '$lib/api';
import { t } from '$lib/i18n/index.svelte';

const codeOf = (error: unknown) => (error instanceof ApiError ? error.code : '');

/** Whether it is for people who were let in by the authors. */
export function isAccessError(error: unknown): boolean {
  return ['gated', 'unauthorized'].includes(codeOf(error));
}

export function hubErrorTitle(error: unknown): string {
  const code = codeOf(error);
  switch (code) {
    case 'offline':
      return t('models.hubFailed');
    case 'hub_model_not_found':
      return t('models.notOnHub');
    case 'gated':
    case 'unauthorized':
    case 'rate_limited':
    case 'no_weights':
      return t(`models.jobError.${code}`);
    default:
      return t('common.failed');
  }
}
