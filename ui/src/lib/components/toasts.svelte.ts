/** Short messages at the edge of the window; one may carry an action such as undo. */

export interface Toast {
  id: number;
  message: string;
  tone: 'neutral' | 'success' | 'danger';
  action?: { label: string; run: () => void };
}

const SHOWN_MS = 6000;

let list = $state.raw<Toast[]>([]);
let last = 0;
const timers = new Map<number, ReturnType<typeof setTimeout>>();

export const toasts = {
  get list() {
    return list;
  },
  /** Shows a message for some seconds. */
  show(toast: Omit<Toast, 'id' | 'tone'> & { tone?: Toast['tone'] }): number {
    const id = (last += 1);
    list = [...list.slice(-2), { tone: 'neutral', ...toast, id }];
    this.release(id);
    return id;
  },
  close(id: number) {
    clearTimeout(timers.get(id));
    timers.delete(id);
    list = list.filter((toast) => toast.id !== id);
  },
  /** Keeps a message while the pointer or the focus is on it. */
  hold(id: number) {
    clearTimeout(timers.get(id));
  },
  release(id: number) {
    clearTimeout(timers.get(id));
    timers.set(
      id,
      setTimeout(() => this.close(id), SHOWN_MS),
    );
  },
};
