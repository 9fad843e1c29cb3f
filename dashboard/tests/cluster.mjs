// Clusters of real processes for the browser tests: started in a folder of their own, ended with the test.

import { spawn } from "node:child_process";
import { mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { rest } from "./chrome.mjs";

const PATIENCE_MS = 60_000;

/** A port that nobody listens on, below those that the system hands out for outgoing connections. */
async function freePort(taken) {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 8000);
    const free = await new Promise((done) => {
      const server = createServer().once("error", () => done(false));
      server.listen(port, "127.0.0.1", () => server.close(() => done(true)));
    });
    if (free && !taken.has(port)) {
      taken.add(port);
      return port;
    }
  }
}

let founded = 0;

/** How a cluster finds its logs and its nodes: each other, or a schema of its own where a database is given for the tests. */
function ways(nodes, node) {
  const database = process.env.IKADA_TEST_LOG_URL;
  if (database) return ["--log", `${database}?options=-csearch_path%3Dcluster_${founded}`];
  return nodes.filter((other) => other !== node).flatMap((other) => ["--peer", `127.0.0.1:${other.peer}`]);
}

/** Starts so many nodes and waits until each serves; `flags` may be a function of the node. */
export async function startCluster(program, count, flags = []) {
  const folder = mkdtempSync(join(tmpdir(), "ikada-dashboard-"));
  const taken = new Set();
  const nodes = [];
  const own = typeof flags === "function" ? flags : () => flags;
  for (let id = 1; id <= count; id += 1) nodes.push({ id, client: await freePort(taken), peer: await freePort(taken) });
  founded += 1;
  for (const node of nodes) {
    const log = openSync(join(folder, `${node.id}.log`), "a");
    const settings = ["server", "--node-id", node.id, "--data", join(folder, `node-${node.id}`), "--expect", count, "--shards", 4, "--listen", `127.0.0.1:${node.client}`,
      "--peer-listen", `127.0.0.1:${node.peer}`, "--until-stdin-closes", "--shed", "off", ...ways(nodes, node), ...own(node)].map(String);
    const bare = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("IKADA_")));
    node.child = spawn(program, settings, { stdio: ["pipe", "ignore", log], env: bare });
    node.url = `http://127.0.0.1:${node.client}`;
  }
  const cluster = { nodes, folder, token: null, stop: () => stop(nodes, folder), kill: (id) => kill(nodes[id - 1]) };
  if (own(nodes[0]).includes("--auth")) cluster.token = (await eventually(() => readFileSync(join(folder, "node-1", "admin-token"), "utf8"))).trim();
  for (const node of nodes) await eventually(() => call(cluster, node, "GET", "/v1/queues"));
  return cluster;
}

async function eventually(work) {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (Date.now() > end) throw error;
      await rest(100);
    }
  }
}

/** Calls a node as a program does; throws what is no success. */
export async function call(cluster, node, method, path, body, headers = {}) {
  const isDocument = body !== undefined && typeof body !== "string";
  const all = { ...(isDocument && { "Content-Type": "application/json" }), ...(cluster.token && { Authorization: `Bearer ${cluster.token}` }), ...headers };
  const response = await fetch(node.url + path, { method, headers: all, body: isDocument ? JSON.stringify(body) : body });
  const text = await response.text();
  if (!response.ok) throw Object.assign(new Error(`${method} ${path}: ${response.status} ${text}`), { status: response.status });
  return text ? JSON.parse(text) : null;
}

/** The node that leads a shard, as another one knows. */
export async function leaderOf(cluster, shard) {
  return eventually(async () => {
    const view = await call(cluster, cluster.nodes.find((node) => node.child.exitCode === null && !node.child.killed), "GET", "/v1/cluster");
    const leader = view.shards.find((one) => one.shard === shard).leader;
    if (!leader) throw new Error(`shard ${shard} has no leader`);
    return Number(leader);
  });
}

async function kill(node) {
  const ended = new Promise((done) => node.child.once("exit", done));
  node.child.kill("SIGKILL");
  await ended;
}

async function stop(nodes, folder) {
  await Promise.all(nodes.filter((node) => node.child.exitCode === null && node.child.signalCode === null).map(kill));
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}
