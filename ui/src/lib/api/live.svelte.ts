/** Small live stores fed by the event stream: connection, throughput, the newest log entries. */
import type { LogEntry, Throughput } from './types';

const LOGS_KEPT = 1000;

export type ConnectionState = 'connecting' | 'open' | 'lost';

let state = $state<ConnectionState>('connecting');
let throughput = $state.raw<Throughput | null>(null);
let logs = $state.raw<LogEntry[]>([]);

/** Whether the event stream runs. */
export const connection = {
  get state() {
    return state;
  },
  opened() {
    state = 'open';
  },
  lost() {
    state = 'lost';
  },
};

/** What arrived since the page opened. */
export const live = {
  /** The last reading; null until there is one. */
  get throughput() {
    return throughput;
  },
  /** Newest last, a bounded number. */
  get logs() {
    return logs;
  },
  clearLogs() {
    logs = [];
  },
};

/** The writing side, for the event stream only. */
export const feed = {
  throughput(reading: Throughput) {
    throughput = reading;
  },
  log(entry: LogEntry) {
    logs = [...logs.slice(1 - LOGS_KEPT), entry];
  },
};
