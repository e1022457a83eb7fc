/** The models to begin with: all of architectures the engine runs, from small to large. */

export interface Starter {
  /** On the hub. */
  id: string;
  name: string;
  /** As people write it: `1.7B`. */
  parameters: string;
  /** Download, roughly; the hub's own number replaces it. */
  sizeBytes: number;
  /** Memory of a machine on which it runs beside other programs, in GiB. */
  memoryGib: number;
  /** Memory from which it is what we recommend, in GiB; none: only for those who ask for it. */
  recommendedGib?: number;
}

export const STARTERS: [Starter, ...Starter[]] = [
  {
    id: 'mlx-community/Qwen3-0.6B-4bit',
    name: 'Qwen3 0.6B',
    parameters: '0.6B',
    sizeBytes: 351_000_000,
    memoryGib: 0,
    recommendedGib: 0,
  },
  {
    id: 'mlx-community/Qwen3-1.7B-4bit',
    name: 'Qwen3 1.7B',
    parameters: '1.7B',
    sizeBytes: 984_000_000,
    memoryGib: 8,
    recommendedGib: 8,
  },
  {
    id: 'mlx-community/Llama-3.2-3B-Instruct-4bit',
    name: 'Llama 3.2 3B',
    parameters: '3.2B',
    sizeBytes: 1_825_000_000,
    memoryGib: 8,
  },
  {
    id: 'mlx-community/Qwen3-4B-Instruct-2507-4bit',
    name: 'Qwen3 4B Instruct',
    parameters: '4B',
    sizeBytes: 2_280_000_000,
    memoryGib: 16,
    recommendedGib: 16,
  },
  {
    id: 'mlx-community/Qwen3-8B-4bit',
    name: 'Qwen3 8B',
    parameters: '8.2B',
    sizeBytes: 4_620_000_000,
    memoryGib: 16,
    recommendedGib: 24,
  },
  {
    id: 'mlx-community/Qwen3-14B-4bit',
    name: 'Qwen3 14B',
    parameters: '14.8B',
    sizeBytes: 8_320_000_000,
    memoryGib: 24,
    recommendedGib: 48,
  },
  {
    id: 'mlx-community/Qwen3-32B-4bit',
    name: 'Qwen3 32B',
    parameters: '32.8B',
    sizeBytes: 18_450_000_000,
    memoryGib: 48,
  },
];

/** What a machine has to run a model with. */
export interface Hardware {
  memoryBytes: number;
  /** Without a GPU that MLX uses, more than the smallest is no pleasure. */
  hasGpu: boolean;
}

// Systems report somewhat less than what is built in.
const REPORTED = 0.9;

const hasGib = ({ memoryBytes }: Hardware, gib: number) => memoryBytes >= gib * 2 ** 30 * REPORTED;

/** Those that run on the machine, smallest first; the first always does. */
export function runnable(hardware: Hardware): Starter[] {
  return STARTERS.filter(({ memoryGib }) => hasGib(hardware, memoryGib));
}

/** The one to begin with. */
export function recommended(hardware: Hardware): Starter {
  if (!hardware.hasGpu) return STARTERS[0];
  return (
    STARTERS.findLast(
      ({ recommendedGib }) => recommendedGib !== undefined && hasGib(hardware, recommendedGib),
    ) ?? STARTERS[0]
  );
}

const ASSUMED_BITS_PER_SECOND = 100_000_000;

/** Minutes to download at 100 Mbit/s, at least one. */
export function minutesToDownload(bytes: number): number {
  return Math.max(1, Math.round((bytes * 8) / ASSUMED_BITS_PER_SECOND / 60));
}
