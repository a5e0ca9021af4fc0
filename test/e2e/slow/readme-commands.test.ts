import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, it, type TestContext } from 'vitest'
import { type Devnet, startDevnet } from '../../../src/devnet/devnet.ts'
import { snippets } from '../../../src/docs/snippets.ts'
import { ChildProgram, createTempFolder, freePort, listeningLine, startCommand } from '../../support/child-program.ts'
import { hasPrograms } from '../../support/debian-programs.ts'

/** Every command of these pages is run: here as it stands, but for addresses and folders, or by another file. */

const pages = ['README.md', ...['deploy', 'operate', 'cluster', 'command-line'].map((name) => `docs/${name}.md`)]
const listens = listeningLine

/** What a command prints when it works. */
const runHere: Readonly<Record<string, RegExp>> = {
  'npm start': listens,
  'npm start -- --faults drop=5%,reorg=2%,silent=30s': listens,
  'UPSTREAM_RPC_URL=https://… UPSTREAM_WS_URL=wss://… STOCKS_API_URL=https://… npm start': listens,
  'WORKERS=2 npm start': listens,
  'npm run devnet -- --port 9545': /http:\S+/,
  'node src/main.ts': listens,
  'nats-server -js -sd ./nats &': /Server is ready/,
  'NATS_URL=nats://127.0.0.1:4222 ROLE=ingest PORT=9001 DATA_DIR=./ingest-1 UPSTREAM_RPC_URL=… UPSTREAM_WS_URL=… STOCKS_API_URL=… npm start':
    listens,
  'NATS_URL=nats://127.0.0.1:4222 ROLE=edge PORT=8080 DATA_DIR=./edge-1 npm start': listens,
  'stocktape --version': /^\d+\.\d+\.\d+ \(Node \d/,
  'stocktape help tail': /^stocktape tail SYMBOL/,
  'stocktape tail --help': /^stocktape tail SYMBOL/,
  'stocktape serve --help': /^ {2}--pending-poll PENDING_POLL/m,
  'stocktape --port 8080': listens,
  'stocktape tail AAPLc nvda --since 1m --types transfer --min-value 500': /live over websocket/,
  'stocktape doctor --rpc http://127.0.0.1:2 --timeout 3s': /the relay cannot run on these\n.*no_list/,
  'stocktape conform --only gap-expired,going-away -- python3 src/docs/programs/follow.py': /2 rules kept, 0 broken/,
  'curl -s http://127.0.0.1:8080/healthz': /^\{"status":"ok"\}$/,
  'curl -s http://127.0.0.1:8080/readyz': /^\{"status":"ready",/,
  'stocktape key --name desk': /^k-[\w-]{32}\nsha256:[0-9a-f]{64} name=desk\n$/,
}

/** The file that runs a command, and what shows it there. */
const runElsewhere: Readonly<Record<string, readonly [file: string, shown: string]>> = {
  // The docs page has the same lines to copy.
  ...Object.fromEntries(
    snippets.slice(0, 2).map(({ id, source }) => [source, ['test/e2e/slow/documents.test.ts', `listen-${id}`]] as const),
  ),
  'npm ci': ['test/e2e/slow/newcomer.test.ts', "'npm ci 2>&1'"],
  'npm install ../stocktape/dist/stocktape-*.tgz': ['test/support/packed-package.ts', "['install', tarball"],
  'npm run bundle': ['test/support/built-setup.ts', "'bundle'"],
  'node dist/main.js': ['test/support/child-program.ts', 'dist/main.js'],
  'stocktape --help': ['test/unit/main.test.ts', '--help'],
  'stocktape doctor': ['test/e2e/slow/doctor.test.ts', 'doctor'],
  'curl --http2': ['test/e2e/slow/upgrading-clients.test.ts', '--http2'],
  'NETWORK=base npm start': ['test/unit/relay/config/config.test.ts', "NETWORK: 'base'"],
  'docker build -t stocktape .': ['test/nightly/image.test.ts', "buildah('build'"],
  ...Object.fromEntries(
    [
      'docker run --init --stop-timeout 20 --read-only --tmpfs /tmp -v tape:/data -p 8080:8080 -e NETWORK=base stocktape',
      'docker run --init --stop-timeout 20 -v tape:/data -p 8080:8080 stocktape serve --network base --tape-retention 12h',
      'docker run --rm stocktape doctor --network base',
      'docker run --rm --network host stocktape tail AAPLc',
    ].map((command) => [command, ['test/nightly/image.test.ts', 'config.Entrypoint']] as const),
  ),
  'NATS_PASSWORD=$(openssl rand -hex 16) docker compose -f docs/compose.yaml up --build --detach': [
    'test/unit/deployment-files.test.ts',
    "'docs/compose.yaml'",
  ],
  'docker compose -f docs/compose.single.yaml up --build --detach': [
    'test/unit/deployment-files.test.ts',
    "'docs/compose.single.yaml'",
  ],
  ...Object.fromEntries(
    ['stocktape backup', 'stocktape backup FILE', 'stocktape restore', 'stocktape restore FILE'].map(
      (command) => [command, ['test/unit/tools/backup/backup.test.ts', command.split(' ')[1] ?? '']] as const,
    ),
  ),
  ...Object.fromEntries(
    [
      'docker exec stocktape node /app/main.js backup /data/tape.backup',
      'docker cp stocktape:/data/tape.backup .',
      'docker stop stocktape',
      'docker run --rm -v tape:/data stocktape restore /data/tape.backup --data-dir /data --force',
      'docker start stocktape',
    ].map((command) => [command, ['test/unit/tools/backup/backup.test.ts', "stocktape('restore'"]] as const),
  ),
  'stocktape key': ['test/unit/main.test.ts', "'key'"],
  ...Object.fromEntries(
    [
      'fly secrets set UPSTREAM_RPC_URL=https://… UPSTREAM_WS_URL=wss://… STOCKS_API_URL=https://…',
      'fly deploy',
      'fly secrets set NATS_URL=tls://… UPSTREAM_RPC_URL=https://… UPSTREAM_WS_URL=wss://… STOCKS_API_URL=https://…',
      'fly deploy --config docs/fly-cluster.toml',
      'fly scale count ingest=2 edge=3',
    ].map((command) => [command, ['test/unit/deployment-files.test.ts', "'fly.toml', 'docs/fly-cluster.toml'"]] as const),
  ),
  ...Object.fromEntries(
    [
      'sudo chmod 600 /etc/stocktape.env',
      'sudo cp docs/stocktape.service /etc/systemd/system/',
      'sudo systemctl enable --now stocktape',
      'journalctl -u stocktape -f',
    ].map((command) => [command, ['test/e2e/slow/deployment-programs.test.ts', "'docs/stocktape.service'"]] as const),
  ),
  ...Object.fromEntries(
    [
      'sudo stocktape backup tape.backup --data-dir /var/lib/stocktape',
      'sudo systemctl stop stocktape',
      'sudo stocktape restore tape.backup --data-dir /var/lib/stocktape --force',
      'sudo systemctl start stocktape',
    ].map((command) => [command, ['test/e2e/restart.test.ts', "'the restore of a backup'"]] as const),
  ),
  'npm run package': ['.ci/run', 'stage npm run package\n'],
  'npm install --global ./dist/stocktape-*.tgz': ['test/support/packed-package.ts', "['install', tarball"],
  'npm run doctor': ['package.json', '"doctor": "exec node -- src/main.ts doctor"'],
  'npm run tail': ['package.json', '"tail": "exec node src/main.ts tail"'],
  'npm run conform': ['package.json', '"conform": "exec node src/main.ts conform"'],
  'stocktape serve': ['test/e2e/slow/packed.test.ts', "'serve'"],
  'stocktape conform --server http://127.0.0.1:8080': ['test/e2e/slow/conform.test.ts', '--server'],
  ...Object.fromEntries(
    [
      `echo 'eval "$(stocktape completion bash)"' >> ~/.bashrc`,
      `echo 'eval "$(stocktape completion zsh)"' >> ~/.zshrc`,
      'stocktape completion fish > ~/.config/fish/completions/stocktape.fish',
    ].map((command) => [command, ['test/unit/tools/completion.test.ts', "['zsh', 'fish']"]] as const),
  ),
}

const commandPattern = /^(?:[A-Z_]+=\S+ )*(?:npm|npx|node|stocktape|nats-server|curl|docker) \S/

function commandsOf(text: string): readonly string[] {
  const blocks = [...text.matchAll(/^```sh\n(.*?)^```$/gms)].flatMap(([, block = '']) => block.trim().split('\n'))
  const inline = [...text.replaceAll(/^```.*?^```$/gms, '').matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => code)
  return [...new Set([...blocks, ...inline.filter((code) => commandPattern.test(code))])]
}

/** `stocktape`, as the tarball installs it, for the program of this clone. */
const programFolder = mkdtempSync(join(tmpdir(), 'stocktape-program-'))
const env = { PATH: `${programFolder}:${process.env.PATH}`, HOME: process.env.HOME }

let devnet: Devnet
let relay: ChildProgram
let relayHost: string
let natsPort: number
let nats: ChildProgram | null = null

beforeAll(async () => {
  const program = resolve('src/main.ts')
  writeFileSync(join(programFolder, 'stocktape'), `#!/bin/sh\nexec node ${program} "$@"\n`, { mode: 0o755 })
  devnet = await startDevnet()
  natsPort = await freePort()
  relay = new ChildProgram(startCommand, { env: { PATH: process.env.PATH, PORT: '0', DATA_DIR: ':memory:' } })
  relayHost = new URL(await relay.listeningUrl()).host
})
afterAll(async () => {
  await relay?.kill()
  await nats?.kill()
  await devnet.stop()
  rmSync(programFolder, { recursive: true })
})

/** The command with the addresses of this test. */
const atHome = (command: string, folder: string): string =>
  command
    .replaceAll('127.0.0.1:8080', relayHost)
    .replaceAll('127.0.0.1:4222', `127.0.0.1:${natsPort}`)
    .replace('nats-server', `nats-server -a 127.0.0.1 -p ${natsPort}`)
    .replace(/PORT=\d+|--port \d+/, (found) => found.replace(/\d+/, '0'))
    .replace(/UPSTREAM_RPC_URL=\S+/, `UPSTREAM_RPC_URL=${devnet.rpcUrl}`)
    .replace(/UPSTREAM_WS_URL=\S+/, `UPSTREAM_WS_URL=${devnet.wsUrl}`)
    .replace(/STOCKS_API_URL=\S+/, `STOCKS_API_URL=${devnet.url}`)
    .replaceAll(' ./', ` ${folder}/`)
    .replaceAll('=./', `=${folder}/`)
    .replace(/ & *$/, '')

async function runCommand(test: TestContext, command: string): Promise<ChildProgram> {
  const folder = await createTempFolder(test)
  const settings = { PORT: '0', DATA_DIR: join(folder, 'data'), STOCKTAPE_URL: `http://${relayHost}` }
  return new ChildProgram(['bash', '-c', atHome(command, folder)], { env: { ...env, ...settings } })
}

it('each command of the pages is run, here or elsewhere', () => {
  const run = [...Object.keys(runHere), ...Object.keys(runElsewhere)]
  const found = new Set(pages.flatMap((page) => commandsOf(readFileSync(page, 'utf8'))))
  expect([...found].toSorted()).toEqual(run.toSorted())
  for (const [command, [file, shown]] of Object.entries(runElsewhere))
    expect(readFileSync(file, 'utf8').includes(shown), `${command} in ${file}`).toBe(true)
})

it.runIf(hasPrograms('nats', 'python'))('the commands of the pages do what they say', async (test) => {
  for (const [command, printed] of Object.entries(runHere)) {
    const program = await runCommand(test, command)
    try {
      await Promise.any([program.waitForOutput('stdout', printed), program.waitForOutput('stderr', printed)])
    } catch (failure) {
      throw new Error(`${command}: ${program.stdout}${program.stderr}`, { cause: failure })
    }
    // The next commands need it.
    if (command.startsWith('nats-server')) nats = program
    else await program.kill()
  }
})
