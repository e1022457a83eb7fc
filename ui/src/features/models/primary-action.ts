/** The one thing to do next with a model, from what is true about it. */
import type { DownloadJob, Model } from '$lib/api';

export type Action =
  | 'download'
  | 'pause'
  | 'resume'
  | 'retry'
  | 'load'
  | 'loading'
  | 'unload'
  | 'unloading'
  | 'chat'
  | 'none';

export interface Situation {
  /** The model in the library, if it is there. */
  model?: Pick<Model, 'state' | 'is_loaded' | 'is_loading' | 'is_supported' | 'capabilities'>;
  /** Its download, if there is one. */
  job?: Pick<DownloadJob, 'state'>;
  /** What this page asked for and has no answer to yet. */
  busy?: 'loading' | 'unloading';
  /** What a loaded model is for here: freeing memory in the library, talking on the hub, where it
   * talks at all. */
  whenLoaded: 'unload' | 'chat';
}

/** `none` when nothing can be done, because the engine does not know the architecture. */
export function primaryAction({ model, job, busy, whenLoaded }: Situation): Action {
  if (busy === 'unloading') return 'unloading';
  if (busy === 'loading' || model?.is_loading) return 'loading';
  if (model?.is_loaded) return model.capabilities.chat ? whenLoaded : 'unload';
  if (job && job.state !== 'done') {
    if (job.state === 'paused') return 'resume';
    return job.state === 'failed' ? 'retry' : 'pause';
  }
  if (model?.state === 'complete') return model.is_supported ? 'load' : 'none';
  return 'download';
}
