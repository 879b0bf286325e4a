// Reads one formula a line, as JSON, and answers each with a line of JSON.
const katex = require("./katex.min.js");
const lines = require("readline").createInterface({ input: process.stdin });
lines.on("line", (line) => {
  const { tex, display } = JSON.parse(line);
  let answer;
  try {
    answer = { html: katex.renderToString(tex, { displayMode: display, strict: false }) };
  } catch (error) {
    answer = { error: error.message };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
});
