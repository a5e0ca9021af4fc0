import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, it, type TestContext } from 'vitest'
import { type Devnet, startDevnet } from '../../../src/devnet/devnet.ts'
import { snippets } from '../../../src/docs/snippets.ts'
import { ChildProgram, createTempFolder, freePort, startCommand } from '../../support/child-program.ts'
import { hasPrograms } from '../../support/debian-programs.ts'

/** Every command of these pages is run: here as it stands, but for addresses and folders, or by another file. */

const pages = ['README.md', ...['deploy', 'operate', 'cluster', 'command-line'].map((name) => `docs/${name}.md`)]
const listens = /listens on (http:\S+),/

/** What a command prints when it works. */
const runHere: Readonly<Record<string, RegExp>> = {
  'npm start': listens,
  'npm start -- --faults drop=5%,reorg=2%,silent=30s': listens,
  'UPSTREAM_RPC_URL=https://… UPSTREAM_WS_URL=wss://… STOCKS_API_URL=https://… npm start': listens,
}

/** The file that runs a command, and what shows it there. */
const runElsewhere: Readonly<Record<string, readonly [file: string, shown: string]>> = {
  // The docs page has the same lines to copy.
  ...Object.fromEntries(
    snippets.slice(0, 2).map(({ id, source }) => [source, ['test/e2e/slow/documents.test.ts', `listen-${id}`]] as const),
  ),
  'npm ci': ['test/e2e/slow/newcomer.test.ts', "'npm ci 2>&1'"],
  'npm run package': ['.ci/run', 'stage npm run package'],
  'npm install ../stocktape/dist/stocktape-*.tgz': ['test/support/packed-package.ts', "['install', tarball"],
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
