// @ts-check
/** JSON for a reader: its fields in words, or its own tokens laid out. Nothing is rounded, dropped or hidden. Pure. */
import { inWords, inert } from './words.js';

/**
 * @param {string} text JSON
 * @returns {string[]} its tokens, as they stand there
 */
function tokensOf(text) {
  return text.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/gs) ?? [];
}

/** @type {Readonly<Record<string, string>>} */
const PLAIN = { true: 'yes', false: 'no', null: 'nothing', '""': 'nothing', '{}': 'nothing', '[]': 'nothing' };

/**
 * The fields of a JSON object for a reader, in its order and with what stands there twice; `null` where the text is none.
 * Numbers are as they would be sent, and nothing is hidden.
 * @param {string} text
 * @returns {{name: string, value: string}[] | null}
 */
export function fieldsOf(text) {
  try {
    const parsed = JSON.parse(text || '{}');
    if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return null;
  } catch {
    return null;
  }
  /** @type {string[][]} */
  const fields = [];
  let depth = 0;
  for (const token of tokensOf(text)) {
    if (token === '}' || token === ']') depth -= 1;
    if (depth === 1 && (token === ',' || !fields.length)) fields.push([]);
    if (depth > 1 || (depth === 1 && token !== ',')) fields.at(-1)?.push(token);
    if (token === '{' || token === '[') depth += 1;
  }
  return fields.map(([name = '""', , ...value]) => ({ name: inWords(JSON.parse(name)), value: valueOf(value) }));
}

/**
 * @param {string[]} tokens of one value
 * @returns {string}
 */
function valueOf(tokens) {
  const text = tokens.join('');
  return PLAIN[text] ?? (tokens.length === 1 && text.startsWith('"') ? inert(JSON.parse(text)) : prettyArguments(text));
}

/**
 * JSON laid out to be read, empty where it holds nothing. The text's own tokens are kept as they are: numbers that
 * JavaScript would round and names that stand there twice are shown as they would be sent.
 * @param {string} text
 * @returns {string}
 */
export function prettyArguments(text) {
  try {
    JSON.parse(text || '{}');
  } catch {
    return inert(text);
  }
  const tokens = tokensOf(text);
  let depth = 0;
  let out = '';
  tokens.forEach((token, place) => {
    const next = tokens[place + 1];
    const line = `\n${'  '.repeat(Math.max(0, depth + (next === '}' || next === ']' ? -1 : 0)))}`;
    if (token === '{' || token === '[') {
      depth += 1;
      out += next === '}' || next === ']' ? token : `${token}\n${'  '.repeat(depth)}`;
    } else if (token === '}' || token === ']') {
      depth -= 1;
      out += token;
      if (next === '}' || next === ']') out += `\n${'  '.repeat(Math.max(0, depth - 1))}`;
    } else if (token === ',') {
      out += `,\n${'  '.repeat(depth)}`;
    } else if (token === ':') {
      out += ': ';
    } else {
      out += inert(token);
      if (next === '}' || next === ']') out += line;
    }
  });
  return out === '{}' ? '' : out;
}
