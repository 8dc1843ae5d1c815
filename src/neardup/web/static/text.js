// Texts: words and shingles as the library cuts them, the difference of two texts, and invisible characters.

const WORD = /[\p{L}\p{M}\p{Nd}\p{Nl}]+/gu;
const SPACELESS =
  /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}\p{scx=Myanmar}]/u;
const DIGITS = /^\p{Nd}+$/u;
const ACCENTS = /[\u0300-\u036f]/g;
// As cli/visible.py: controls, marks that reorder what is read, and formats that are invisible or hide text.
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029\u2060-\u2064\u206a-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}\ud800-\udfff]/gu;
const HIDDEN_IN_LINE = new RegExp(`[\\t\\n${HIDDEN.source.slice(1)}`, "gu");

// As kernels/unicode.py: dropped, so that they split no word.
const INVISIBLE = /[\u00ad\u200b-\u200d\u2060\ufeff]/g;

const dropInvisible = (text) => text.replace(INVISIBLE, "");

/** Cut a text without its invisible characters by `cut`; the places are those in the text itself. */
function cutVisible(text, settings, cut) {
  if (text.search(INVISIBLE) < 0) return cut(text, settings);
  const places = [];
  for (let at = 0; at < text.length; at++) {
    if (text[at].search(INVISIBLE) < 0) places.push(at);
  }
  return cut(dropInvisible(text), settings).map(({ start, end, word }) => (
    { start: places[start], end: places[end - 1] + 1, word }
  ));
}

/** Cut a text into plain strings and the code points of invisible characters, alternately; on one line, also of tabs and line ends. */
function cutHidden(text, isLine = false) {
  const parts = [];
  let end = 0;
  for (const found of text.matchAll(isLine ? HIDDEN_IN_LINE : HIDDEN)) {
    if (!isLine && found[0] === "\r" && text[found.index + 1] === "\n") continue;
    parts.push(text.slice(end, found.index), codePoint(found[0]));
    end = found.index + found[0].length;
  }
  parts.push(text.slice(end));
  return parts;
}

const codePoint = (character) => "U+" + character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");

function fold(word, settings) {
  let folded = word.normalize(settings.form).toLowerCase().replaceAll("ς", "σ");
  if (settings.fold_accents) folded = folded.normalize("NFD").replace(ACCENTS, "").normalize("NFC");
  return settings.fold_numbers && DIGITS.test(folded) ? "0" : folded;
}

/** The words of a text with their places: [{start, end, word}]; of a set, its items. */
function findWords(text, settings) {
  return settings.unit === "item" ? findItems(text) : cutVisible(text, settings, cutWords);
}

function findItems(text) {
  const items = [];
  let start = 0;
  for (const item of text.split("\n")) {
    if (item) items.push({ start, end: start + item.length, word: item });
    start += item.length + 1;
  }
  return items;
}

function cutWords(text, settings) {
  const words = [];
  for (const found of text.matchAll(WORD)) {
    if (!SPACELESS.test(found[0])) {
      words.push({ start: found.index, end: found.index + found[0].length, word: fold(found[0], settings) });
      continue;
    }
    let start = found.index, spaced = "";
    const flush = (end) => {
      if (spaced) words.push({ start: end - spaced.length, end, word: fold(spaced, settings) });
      spaced = "";
    };
    for (const character of found[0]) {
      if (SPACELESS.test(character)) {
        flush(start);
        words.push({ start, end: start + character.length, word: fold(character, settings) });
      } else spaced += character;
      start += character.length;
    }
    flush(start);
  }
  return words;
}

const WORD_EDGE = "[\\p{L}\\p{M}\\p{N}]";

const foldForSearch = (text) => dropInvisible(text).normalize("NFD").replace(ACCENTS, "").toLowerCase();

/** Patterns that find the words of a query, as the word index of the server does; the last one may be unfinished. */
function parseQuery(query) {
  const words = foldForSearch(query).match(/[\p{L}\p{M}\p{N}]+/gu) || [];
  return words.map((word, at) => {
    if (SPACELESS.test(word)) return new RegExp(word, "u");
    const isOpen = at === words.length - 1 && !/[^\p{L}\p{M}\p{N}]$/u.test(query);
    return new RegExp(`(?<!${WORD_EDGE})${word}${isOpen ? "" : `(?!${WORD_EDGE})`}`, "u");
  });
}

/** Whether a text has every word of a query. */
function hasWords(text, patterns) {
  const folded = text && patterns.length ? foldForSearch(text) : "";
  return folded !== "" && patterns.every((pattern) => pattern.test(folded));
}

const EXCERPT = 160;

/** A line of a text: around the longest word of a query, or its first words. */
function excerpt(text, words = []) {
  const longest = [...words].sort((a, b) => b.length - a.length)[0];
  const found = longest ? (text || "").toLowerCase().indexOf(longest) : -1;
  const start = found < EXCERPT / 2 ? 0 : text.lastIndexOf(" ", found - EXCERPT / 4) + 1 || found;
  return (start ? "… " : "") + lineOf(text || "", start, EXCERPT);
}

/** A line of about `size` characters of a text, which ends behind a word where it can. */
function lineOf(text, start, size) {
  let stop = start + size;
  if (stop < text.length) {
    const found = text.slice(start + size / 2, stop + 1).search(/\s\S*$/);
    if (found >= 0) stop = start + size / 2 + found;
  }
  const line = text.slice(start, stop).replace(/[\ud800-\udbff]$/, "").replace(/\s+/g, " ").trim();
  return stop < text.length ? `${line} …` : line;
}

/** The characters of a text with their places, folded; each run of white space is one. */
const findCharacters = (text, settings) => cutVisible(text, settings, cutCharacters);

function cutCharacters(text, settings) {
  const found = [];
  for (const part of text.matchAll(/\s+|\P{M}\p{M}*|\p{M}+/gu)) {
    const start = part.index, end = start + part[0].length;
    const isSpace = /^\s/u.test(part[0]);
    for (const word of isSpace ? " " : fold(part[0], settings)) found.push({ start, end, word });
  }
  return found;
}

/** The shingles of a text: for every one its key, and the place of its first and last unit. */
function findShingles(text, settings) {
  const units = settings.unit === "char" ? findCharacters(text, settings) : findWords(text, settings);
  const size = settings.unit === "item" ? 1 : Math.min(settings.size, units.length);
  const shingles = [];
  for (let first = 0; size && first + size <= units.length; first++) {
    const key = units.slice(first, first + size).map((unit) => unit.word).join("\u001f");
    shingles.push({ key, start: units[first].start, end: units[first + size - 1].end });
  }
  return shingles;
}

/** The stretches of a text that are covered by shingles of another one: [{start, end, key}], in order. */
function sharedStretches(shingles, otherKeys) {
  const stretches = [];
  for (const { key, start, end } of shingles) {
    if (!otherKeys.has(key)) continue;
    const last = stretches[stretches.length - 1];
    if (last && start <= last.end + 1) last.end = Math.max(last.end, end);
    else stretches.push({ start, end, key });
  }
  return stretches;
}

const UNIT = /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}\p{scx=Myanmar}]\s*|[^\s\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}\p{scx=Myanmar}]+\s*|\s+/gu;
const MAX_CELLS = 250_000;
const ALL_CELLS = 30_000_000;

/** What differs between two texts, word by word: [{isEqual, a: [start, end], b: [start, end], words}], in order. */
function differ(textA, textB) {
  const unitsA = cutUnits(textA), unitsB = cutUnits(textB);
  const numbers = new Map();
  const idsA = numberUnits(unitsA, numbers), idsB = numberUnits(unitsB, numbers);
  const pairs = [];
  const budget = { cells: ALL_CELLS };
  match(idsA, idsB, 0, idsA.length, 0, idsB.length, pairs, budget);
  pairs.push([idsA.length, idsB.length]);
  const passages = [];
  let atA = 0, atB = 0, equalFrom = null;
  const place = (units, at, text) => (at < units.length ? units[at].index : text.length);
  const add = (isEqual, fromA, toA, fromB, toB) => passages.push({
    isEqual,
    a: [place(unitsA, fromA, textA), place(unitsA, toA, textA)],
    b: [place(unitsB, fromB, textB), place(unitsB, toB, textB)],
    words: Math.max(toA - fromA, toB - fromB),
    // Where equal words stand on both sides, and whether a line ends behind the one before.
    cuts: isEqual ? rowEnds(unitsA, unitsB, fromA, toA, fromB) : [],
  });
  for (const [nextA, nextB] of pairs) {
    if (equalFrom && (nextA !== atA || nextB !== atB || nextA === idsA.length)) {
      add(true, equalFrom[0], atA, equalFrom[1], atB);
      equalFrom = null;
    }
    if (nextA > atA || nextB > atB) add(false, atA, nextA, atB, nextB);
    equalFrom = equalFrom || [nextA, nextB];
    atA = nextA + 1;
    atB = nextB + 1;
  }
  return passages;
}

const WORDS_OF_ROW = 40;

/** Where equal stretches of two texts are cut into rows that stand side by side: at line ends, at the latest after some words. */
function rowEnds(unitsA, unitsB, fromA, toA, fromB) {
  const cuts = [];
  let since = 0;
  for (let at = fromA + 1; at < toA; at++) {
    since++;
    if (!unitsA[at - 1][0].includes("\n") && since < WORDS_OF_ROW) continue;
    cuts.push([behindLine(unitsA[at - 1]), behindLine(unitsB[at - 1 - fromA + fromB])]);
    since = 0;
  }
  return cuts;
}

/** Where the line that a word ends is over, or where the word is: the indentation of the next line belongs to that line. */
const behindLine = (unit) => unit.index + (unit[0].lastIndexOf("\n") + 1 || unit[0].length);

const cutUnits = (text) => [...text.matchAll(UNIT)];

function numberUnits(units, numbers) {
  return Int32Array.from(units, (unit) => {
    const word = dropInvisible(unit[0]).trimEnd() || " ";
    if (!numbers.has(word)) numbers.set(word, numbers.size);
    return numbers.get(word);
  });
}

/** Append the matched positions of a[fromA:toA] and b[fromB:toB], in order. */
function match(a, b, fromA, toA, fromB, toB, pairs, budget) {
  while (fromA < toA && fromB < toB && a[fromA] === b[fromB]) pairs.push([fromA++, fromB++]);
  const tail = [];
  while (fromA < toA && fromB < toB && a[toA - 1] === b[toB - 1]) tail.push([--toA, --toB]);
  const cells = (toA - fromA) * (toB - fromB);
  if (cells > 0) {
    const anchors = cells <= MAX_CELLS ? [] : findAnchors(a, b, fromA, toA, fromB, toB);
    if (anchors.length) {
      for (const [atA, atB] of [...anchors, null].map((anchor) => anchor || [toA, toB])) {
        if (atA < fromA || atB < fromB) continue;
        match(a, b, fromA, atA, fromB, atB, pairs, budget);
        if (atA < toA && atB < toB) pairs.push([atA, atB]);
        fromA = atA + 1;
        fromB = atB + 1;
      }
    } else if (cells <= MAX_CELLS && budget.cells > 0) {
      budget.cells -= cells;
      longestCommon(a, b, fromA, toA, fromB, toB, pairs);
    }
  }
  for (let at = tail.length - 1; at >= 0; at--) pairs.push(tail[at]);
}

/** Positions of words, in runs, that occur once on each side, in rising order on both. */
function findAnchors(a, b, fromA, toA, fromB, toB) {
  for (const size of [8, 3, 1]) {
    const inA = singles(a, fromA, toA, size), inB = singles(b, fromB, toB, size);
    const found = [];
    for (const [key, atA] of inA) {
      const atB = inB.get(key);
      if (atA >= 0 && atB !== undefined && atB >= 0) found.push([atA, atB]);
    }
    found.sort((one, other) => one[0] - other[0]);
    const chain = risingChain(found);
    if (chain.length) return chain;
  }
  return [];
}

function singles(ids, from, to, size) {
  const places = new Map();
  for (let at = from; at + size <= to; at++) {
    const key = ids.subarray(at, at + size).join(",");
    places.set(key, places.has(key) ? -1 : at);
  }
  return places;
}

/** The longest subsequence whose second parts rise. */
function risingChain(found) {
  const tails = [], before = new Int32Array(found.length).fill(-1);
  found.forEach(([, atB], number) => {
    let low = 0, high = tails.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (found[tails[middle]][1] < atB) low = middle + 1;
      else high = middle;
    }
    before[number] = low ? tails[low - 1] : -1;
    tails[low] = number;
  });
  const chain = [];
  for (let at = tails.length ? tails[tails.length - 1] : -1; at >= 0; at = before[at]) chain.push(found[at]);
  return chain.reverse();
}

function longestCommon(a, b, fromA, toA, fromB, toB, pairs) {
  const width = toB - fromB + 1, height = toA - fromA;
  const lengths = new Uint16Array((height + 1) * width);
  for (let i = height - 1; i >= 0; i--) {
    for (let j = width - 2; j >= 0; j--) {
      lengths[i * width + j] = a[fromA + i] === b[fromB + j]
        ? lengths[(i + 1) * width + j + 1] + 1
        : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
    }
  }
  for (let i = 0, j = 0; i < height && j < width - 1;) {
    if (a[fromA + i] === b[fromB + j]) pairs.push([fromA + i++, fromB + j++]);
    else if (lengths[(i + 1) * width + j] >= lengths[i * width + j + 1]) i++;
    else j++;
  }
}
