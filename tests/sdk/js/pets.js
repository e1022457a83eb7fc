// What tests of constrained answers ask for: small enough that a small model comes to an end.

import { z } from "zod";

export const QUESTION = "Invent a pet and describe it in JSON.";

// Zod counts the length of a text in halves of some characters, JSON Schema in characters.
const word = z.string().regex(/^[A-Za-z]{1,6}$/);

export const Pet = z.object({
  name: word,
  kind: z.enum(["cat", "dog", "bird"]),
  owner: z.object({ name: word, age: z.number().int().min(1).max(99) }),
  toys: z.array(word).max(2),
  nickname: word.nullable(),
  born: z.iso.date(),
  size: z.union([z.number().int().min(0).max(9), z.enum(["small", "big"])]),
  isLoud: z.boolean(),
});

/** Bounded without lengths and ranges, which Anthropic's SDK turns into words. */
const Trait = z.object({
  mood: z.enum(["happy", "sleepy"]),
  isLoud: z.boolean(),
  likes: z.enum(["cheese", "fish", "seed"]).nullable(),
});

export const Traits = z.object({ first: Trait, second: Trait });

/** Drawing is real at every one of these. */
export const TEMPERATURES = [0, 0.7, 1.2];
