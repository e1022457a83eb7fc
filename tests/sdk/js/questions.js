// What tests ask and what the script answers.

export const PLAIN = "What is the capital of France?";
export const PLAIN_ANSWER = "The capital of France is Paris.";
export const WARM = "How warm is it in Paris?";
export const WARM_ANSWER = "It is 17 degrees in Paris.";
export const WARM_BOTH = "How warm is it in Paris and Oslo?";
export const WARM_BOTH_ANSWER = "Paris is warmer than Oslo.";
export const SUM = "What is 17 times 23?";
export const SUM_REASONING = "17 * 20 = 340 and 17 * 3 = 51.";
export const SUM_ANSWER = "It is 391.";
export const TOO_LONG = "Be too long.";
export const BUSY = "Be busy.";
export const BREAK_OFF = "Break off.";

const DEGREES = { Paris: 17, Oslo: 3 };

export function weather({ city }) {
  return `${DEGREES[city]} degrees in ${city}`;
}

export const WEATHER_SCHEMA = {
  type: "object",
  properties: { city: { type: "string", description: "Name of the city." } },
  required: ["city"],
  additionalProperties: false,
};
