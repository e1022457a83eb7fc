/** Short messages at the edge of the window; one may carry an action such as undo. */

export interface Toast {
  id: number;
  message: string;
  tone: 'neutral' | 'success' | 'danger';
  action?: { label: string; run: () => void };
  /** Runs when the message goes without its action being taken. */
  onclose?: () => void;
}

const SHOWN_MS = 6000;
const SHOWN_AT_MOST = 3;

let list = $state.raw<Toast[]>([]);
let last = 0;
const timers = new Map<number, ReturnType<typeof setTimeout>>();

function remove(id: number): Toast | undefined {
  clearTimeout(timers.get(id));
  timers.delete(id);
  const toast = list.find((candidate) => candidate.id === id);
  list = list.filter((candidate) => candidate.id !== id);
  return toast;
}

export const toasts = {
  get list() {
    return list;
  },
  /** Shows a message for some seconds; the oldest gives way when there are too many. */
  show(toast: Omit<Toast, 'id' | 'tone'> & { tone?: Toast['tone'] }): number {
    const id = (last += 1);
    const oldest = list[0];
    if (oldest && list.length >= SHOWN_AT_MOST) toasts.close(oldest.id);
    list = [...list, { tone: 'neutral', ...toast, id }];
    toasts.release(id);
    return id;
  },
  close(id: number) {
    remove(id)?.onclose?.();
  },
  /** Closes a message by taking its action. */
  act(id: number) {
    remove(id)?.action?.run();
  },
  /** Keeps a message while the pointer or the focus is on it. */
  hold(id: number) {
    clearTimeout(timers.get(id));
  },
  release(id: number) {
    clearTimeout(timers.get(id));
    timers.set(
      id,
      setTimeout(() => toasts.close(id), SHOWN_MS),
    );
  },
};
