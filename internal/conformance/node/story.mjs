// The main job as a host does it: start work, read, edit, test, hand over. Each client brings
// its own list() and call(); what must come back is the same.
import assert from "node:assert/strict";

const needed = ["list_projects", "work_on_project", "read_files", "edit_project_files", "go_test", "read_session_handoff"];

/**
 * @param {{list: () => Promise<{name: string}[]>, call: (name: string, args: object) => Promise<any>}} client
 */
export async function story(client) {
  const names = (await client.list()).map((tool) => tool.name);
  for (const name of needed) assert.ok(names.includes(name), `tools/list has no ${name}: ${names}`);

  const call = async (name, args) => output(name, await client.call(name, args));

  const { projects } = await call("list_projects", {});
  assert.equal(projects.length, 1, "one project is registered");
  const { project } = projects[0];

  const instruction = "Make the test of Sum pass.";
  const work = await call("work_on_project", { project, instruction });
  const { session_id } = work;
  assert.match(session_id, /^wc_sess_[0-9a-f]{32}$/);
  assert.equal(work.continuation, "created");

  const read = await call("read_files", { project, session_id, items: [{ path: "sum.go" }] });
  const [file] = read.items;
  assert.ok(file.success && file.text.includes("a - b"), JSON.stringify(file));

  const edit = await call("edit_project_files", {
    project,
    session_id,
    changes: [
      {
        kind: "edit",
        path: "sum.go",
        expected_sha256: file.sha256,
        edits: [{ kind: "replace_exact", old_text: "a - b", new_text: "a + b" }],
      },
    ],
  });
  assert.deepEqual(edit.changed_paths, ["sum.go"]);

  const test = await call("go_test", { project, session_id, packages: ["./..."] });
  assert.equal(test.passed, true, JSON.stringify(test));
  assert.equal(test.tests_passed, 1);

  const { handoff_brief } = await call("read_session_handoff", { session_id });
  assert.equal(handoff_brief.session.session_id, session_id);
  assert.equal(handoff_brief.task.root_instruction.text, instruction);
  assert.ok(JSON.stringify(handoff_brief.progress.changed_paths.items).includes("sum.go"), JSON.stringify(handoff_brief.progress));
  assert.ok(handoff_brief.validation.latest, "the brief names the test run");
  return session_id;
}

/** The tool's output; both halves of a result must tell the same. */
function output(name, result) {
  assert.ok(!result.isError, `${name}: ${JSON.stringify(result.content)}`);
  const { structuredContent, content } = result;
  assert.equal(content[0].type, "text");
  assert.deepEqual(JSON.parse(content[0].text), structuredContent, `${name}: text and structured content differ`);
  assert.equal(structuredContent.success, true, `${name}: ${content[0].text}`);
  return structuredContent.output;
}

/** How to reach the server, from the command line: {url, token} or {command, args}. */
export function target() {
  return JSON.parse(process.argv[2]);
}
