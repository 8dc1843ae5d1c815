// Where the page gets its data: from the file itself, or from the server that sent it. Both answer with promises.

/** The data of a report in one file. */
function fileSource(data) {
  const { documents, clusters, pairs, passages, pieces, names, matrices, shared } = data;
  const hunks = new Map(data.hunks.map((one) => [pairName(...one.pair), one]));
  const listedPairs = new Map(pairs.map(([a, b, similarity], at) => [pairName(a, b), { similarity, passages: passages[at] }]));
  const positions = new Map(documents.key.map((key, at) => [key, at]));
  const byCluster = new Map(clusters.map((row) => [row[0], row]));

  const get = (key) => {
    const at = positions.get(key);
    if (at === undefined) throw new PageError("This document is not in this report.", "The report holds a sample; `neardup serve` shows everything.");
    const column = (name) => documents[name][at];
    return {
      key, id: column("id"), row: column("row"), file: column("file") === null ? null : names[column("file")],
      bytes: column("bytes"), shingles: column("shingles"), digest: column("digest"), is_whole: column("is_whole"), behind: column("behind"),
      kept: column("kept"), similarity: column("similarity"), columns: column("columns"),
      size: byCluster.has(key) ? byCluster.get(key)[1] : null,
      text: column("text") === null ? null : column("text").map((piece) => pieces[piece]).join(""),
    };
  };
  let rows = null;
  const allRows = () => (rows ??= clusters.map(([key, size, weakest]) => ({ key, size, weakest, id: get(key).id, excerpt: excerpt(get(key).text) })));
  const matcher = (search) => {
    const wanted = search.toLowerCase(), patterns = parseQuery(search);
    return (one) => one.id.toLowerCase().includes(wanted) || hasWords(one.text, patterns);
  };

  return {
    info: data.info,
    isServed: false,
    async clusters({ offset, limit, sort, search, cell = "" }) {
      const matches = matcher(search);
      const [kind, from, to] = cell.split("/").map(Number);
      const isIn = (key) => {
        const pair = documents.cells[positions.get(key)]?.[kind];
        return pair && pair[0] === from && pair[1] === to;
      };
      const ofCell = cell ? allRows().filter((row) => byCluster.get(row.key)[3].some(isIn)) : allRows();
      const found = search ? ofCell.filter((row) => matches(get(row.key))) : ofCell;
      const sorted = [...found].sort(ORDERS[sort] || ORDERS.size);
      return { total: sorted.length, rows: sorted.slice(offset, offset + limit) };
    },
    async listed({ offset, limit, sort, search }) {
      const matches = matcher(search);
      const found = search ? pairs.filter(([a, b]) => matches(get(a)) || matches(get(b))) : pairs;
      const sorted = sort === "-similarity" ? [...found].reverse() : found;
      const rows = sorted.slice(offset, offset + limit).map(([a, b, similarity]) => ({ a, b, similarity, id_a: get(a).id, id_b: get(b).id }));
      return { total: sorted.length, rows };
    },
    async cluster(key) {
      const row = byCluster.get(key);
      if (!row) throw new PageError("This cluster is not in this report.", "The report holds a sample; `neardup serve` shows everything.");
      return { key, size: row[1], weakest: row[2], documents: row[3].map(get), matrix: matrices[key] || null, shared: shared[key] || null };
    },
    async document(key) { return get(key); },
    async pair(a, b) {
      const [one, other] = [get(a), get(b)];
      const listed = listedPairs.get(pairName(a, b));
      const found = { a: one, b: other, hunks: hunksOf(hunks.get(pairName(a, b)), a) };
      if (listed) return { ...found, ...listed };
      return { ...found, similarity: similarityOf(one, other, byCluster, matrices) };
    },
    async search(text) {
      const found = [...documents.key].sort((a, b) => a - b).map(get).filter(matcher(text));
      found.sort((one, other) => (other.id === text) - (one.id === text));
      const words = text.toLowerCase().split(/\s+/);
      const shown = found.slice(0, MAX_FOUND).map((one) => ({ ...one, text: excerpt(one.text, words) }));
      const size = documents.key.length;
      return { rows: shown, total: found.length, num_ids: size, num_texts: data.info.texts.state === "here" ? size : 0 };
    },
  };
}

/** The stored hunks of a pair, with document `a` on the left. */
function hunksOf(stored, a) {
  if (!stored || stored.pair[0] === a) return stored || null;
  return { ...stored, parts: stored.parts.map(([skipped, left, right]) => [skipped, right, left]), left_out: [...stored.left_out].reverse() };
}

const pairName = (a, b) => `${Math.min(a, b)} ${Math.max(a, b)}`;

const MAX_FOUND = 200;
const ORDERS = {
  size: (a, b) => b.size - a.size || a.key - b.key,
  "-size": (a, b) => a.size - b.size || a.key - b.key,
  weakest: (a, b) => a.weakest - b.weakest || a.key - b.key,
  "-weakest": (a, b) => b.weakest - a.weakest || a.key - b.key,
  id: (a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : a.key - b.key),
  "-id": (a, b) => (a.id < b.id ? 1 : a.id > b.id ? -1 : a.key - b.key),
};

/** The similarity of two documents as the run or the heat map says; null where neither does. */
function similarityOf(one, other, byCluster, matrices) {
  if (one.kept === other.key) return one.similarity;
  if (other.kept === one.key) return other.similarity;
  const cluster = one.kept ?? one.key, matrix = matrices[cluster];
  const keys = byCluster.has(cluster) ? byCluster.get(cluster)[3] : [];
  const [low, high] = [keys.indexOf(one.key), keys.indexOf(other.key)].sort((x, y) => x - y);
  return matrix && low >= 0 && low < high ? matrix[cellOf(low, high, keys.length)] : null;
}

/** Where the similarity of two members stands in the upper triangle of a matrix, row by row. */
const cellOf = (low, high, size) => (low * (2 * size - low - 1)) / 2 + high - low - 1;

/** An error with what to do about it. */
class PageError extends Error {
  constructor(message, hint) {
    super(message);
    this.hint = hint;
  }
}

// Milliseconds; the server itself gives up after 20 s.
const MAX_WAIT = 30_000;

/** The same answers from the server. */
function serverSource(info) {
  const ask = async (path, options) => {
    let answer;
    try {
      answer = await fetch(path, { signal: AbortSignal.timeout(MAX_WAIT), ...options });
    } catch {
      throw new PageError("The server does not answer.", "Start `neardup serve` again, then reload this page.");
    }
    const body = await answer.json().catch(() => null);
    if (!answer.ok) throw new PageError(body?.message || `The server answered ${answer.status}.`, body?.hint);
    return body;
  };
  const query = (values) => new URLSearchParams(values).toString();
  return {
    info,
    isServed: true,
    refresh: () => ask("v1/info"),
    clusters: (wanted) => ask("v1/clusters?" + query(wanted)),
    listed: (wanted) => ask("v1/listed?" + query(wanted)),
    cluster: (key) => ask(`v1/clusters/${key}`),
    document: (key) => ask(`v1/rows/${key}`),
    pair: (a, b) => ask("v1/pairs?" + query({ a, b })),
    search: (search) => ask("v1/documents?" + query({ search })),
    query: (text) => ask("v1/query", {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ text }),
    }),
  };
}

async function openSource() {
  const packed = document.getElementById("data").textContent;
  if (packed === "null") return serverSource(await serverSource(null).refresh());
  if (!self.DecompressionStream) throw new PageError("This browser is too old to unpack this report.", "Open it in a browser of 2023 or later.");
  const content = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  const unpacked = new Blob([content]).stream().pipeThrough(new DecompressionStream("gzip"));
  return fileSource(await new Response(unpacked).json());
}
