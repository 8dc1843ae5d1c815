// Marks of the reviewer: stored in the browser, undone step by step, exported for `neardup dedup --decisions`.

const MAX_UNDONE = 1000;

function openMarks(run) {
  const name = `neardup:${run}`;
  let state = { marks: {}, judged: {}, history: [] }, isStored = true;
  try {
    const stored = JSON.parse(localStorage.getItem(name));
    if (stored && typeof stored.marks === "object" && Array.isArray(stored.history)) state = { judged: {}, ...stored };
  } catch {
    isStored = false;
  }
  const listeners = new Set();
  const change = (next) => {
    state = next;
    try {
      localStorage.setItem(name, JSON.stringify(state));
    } catch {
      isStored = false;
    }
    listeners.forEach((listener) => listener());
  };
  return {
    all: () => Object.values(state.marks),
    get: (key) => state.marks[key] || null,
    canUndo: () => state.history.length > 0,
    isStored: () => isStored,
    listen(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    /** Mark a document, or take its mark away with decision null. */
    set(one, decision) {
      const marks = { ...state.marks }, before = marks[one.key] || null;
      if (decision === null) delete marks[one.key];
      else {
        const { key, id, file, row, digest, kept, similarity } = one;
        marks[key] = { key, id, file, row, digest, kept, similarity, decision };
      }
      change({ ...state, marks, history: [...state.history, { key: one.key, before }].slice(-MAX_UNDONE) });
    },
    /** What was judged of the removals that were drawn, by key: "y", "n" or "skipped". */
    judged: () => state.judged,
    /** Judge a removal; one that is wrong is marked to be kept. */
    judge(one, answer) {
      const marks = { ...state.marks }, before = marks[one.key] || null;
      const { key, id, file, row, digest, kept, similarity } = one;
      if (answer === "n") marks[key] = { key, id, file, row, digest, kept, similarity, decision: "keep" };
      change({ marks, judged: { ...state.judged, [key]: answer }, history: [...state.history, { key, before, judged: true }].slice(-MAX_UNDONE) });
    },
    undo() {
      if (!state.history.length) return;
      const { key, before, judged: wasJudged } = state.history[state.history.length - 1];
      const marks = { ...state.marks }, judged = { ...state.judged };
      if (wasJudged) delete judged[key];
      if (before) marks[key] = before;
      else delete marks[key];
      change({ marks, judged, history: state.history.slice(0, -1) });
    },
  };
}

const EXPORTED = ["decision", "file", "row", "digest", "id"];

function marksAsJson(marks, review) {
  const decisions = sortedMarks(marks).map((mark) => Object.fromEntries(EXPORTED.map((name) => [name, mark[name]])));
  return JSON.stringify({ neardup_decisions: 1, decisions, ...(review ? { review } : {}) }, null, 1) + "\n";
}

const sortedMarks = (marks) => [...marks].sort((a, b) => a.key - b.key);

/** A CSV cell that no spreadsheet evaluates as a formula. */
function csvCell(value) {
  const text = String(value ?? "");
  const safe = /^[=+\-@\t\r]/.test(text) ? "'" + text : text;
  return /[",\r\n']/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function marksAsCsv(marks) {
  const lines = sortedMarks(marks).map((mark) => EXPORTED.map((name) => csvCell(mark[name])).join(","));
  return [EXPORTED.join(","), ...lines].join("\r\n") + "\r\n";
}

function download(name, type, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
