/** Words of a POSIX shell: writing them so that they are read back, and reading them. */

/** A word, quoted if it needs to be. */
export function shellWord(text: string): string {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** The words of a line without expanding anything; null when a quote is open at its end. */
export function shellWords(line: string): string[] | null {
  const words: string[] = [];
  let word: string | null = null;
  let quote = '';
  for (let index = 0; index < line.length; index += 1) {
    const char = line.charAt(index);
    if (quote) {
      if (char === quote) quote = '';
      else if (char === '\\' && quote === '"' && /["\\$`]/.test(line.charAt(index + 1)))
        word += line.charAt((index += 1));
      else word += char;
    } else if (/\s/.test(char)) {
      if (word !== null) words.push(word);
      word = null;
    } else {
      word ??= '';
      if (char === '"' || char === "'") quote = char;
      else if (char === '\\' && index + 1 < line.length) word += line.charAt((index += 1));
      else word += char;
    }
  }
  if (quote) return null;
  if (word !== null) words.push(word);
  return words;
}
