// Made by `cargo xtask generate` from the table of sampling parameters; edit that instead.

/** Numbers of a model or a chat, with their ranges. */
export const SAMPLING_PARAMETERS = [
  { key: 'temperature', min: 0, max: 2, isAbove: false, isInteger: false },
  { key: 'topP', min: 0, max: 1, isAbove: false, isInteger: false },
  { key: 'topK', min: 0, max: 4294967295, isAbove: false, isInteger: true },
  { key: 'minP', min: 0, max: 1, isAbove: false, isInteger: false },
  { key: 'topNSigma', min: 0, max: 100, isAbove: false, isInteger: false },
  { key: 'typicalP', min: 0, max: 1, isAbove: false, isInteger: false },
  { key: 'repetitionPenalty', min: 0, max: 100, isAbove: true, isInteger: false },
  { key: 'presencePenalty', min: -2, max: 2, isAbove: false, isInteger: false },
  { key: 'frequencyPenalty', min: -2, max: 2, isAbove: false, isInteger: false },
  { key: 'dynatempRange', min: 0, max: 2, isAbove: false, isInteger: false },
  { key: 'dynatempExponent', min: 0, max: 100, isAbove: false, isInteger: false },
  { key: 'mirostat', min: 0, max: 2, isAbove: false, isInteger: true },
  { key: 'mirostatTau', min: 0, max: 100, isAbove: false, isInteger: false },
  { key: 'mirostatEta', min: 0, max: 100, isAbove: false, isInteger: false },
] as const;
