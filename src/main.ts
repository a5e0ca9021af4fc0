#!/usr/bin/env node
import { type Command, EXIT_OK, EXIT_USAGE, runToExitCode, UsageError } from './lib/exit-codes.ts'
import { adviceFor, type CommandFlags, commonFlags, readFlags } from './lib/flags.ts'
import { helpText } from './lib/help.ts'
import { oneLine } from './lib/text.ts'
import { versionText } from './lib/version.ts'

type CommandEntry = {
  readonly summary: string
  readonly run: Command
  readonly flags: () => Promise<CommandFlags>
  /** All words that may follow the command; absent if there are none, or too many to list. */
  readonly words?: () => Promise<readonly string[]>
}

/** Commands of the program. Each one loads its code only when it runs, so that the relay starts fast. */
const entries: Readonly<Record<string, CommandEntry>> = {
  serve: {
    summary: 'run the relay; also without a command',
    run: async (args) =>
      (await import('./relay/serve.ts')).serve(args, {
        startBuiltInChain: async (faults, pastMs) => (await import('./devnet/devnet.ts')).startBuiltInChain(faults, pastMs),
        loadDocuments: async () => (await import('./docs/documents.ts')).documents,
      }),
    flags: async () => (await import('./relay/config/serve-command-line.ts')).settingFlags,
  },
  tail: {
    summary: 'print the updates of some symbols',
    run: async (args) => (await import('./tools/tail/tail.ts')).tail(args),
    flags: async () => (await import('./tools/tail/tail-flags.ts')).tailFlags,
  },
  doctor: {
    summary: 'examine the upstreams of a relay',
    run: async (args) => (await import('./tools/doctor/doctor.ts')).doctor(args),
    flags: async () => (await import('./tools/doctor/doctor.ts')).doctorFlags,
  },
  backup: {
    summary: 'copy the tape of a relay that runs into a file',
    run: async (args) => (await import('./tools/backup/backup.ts')).backup(args),
    flags: async () => (await import('./tools/backup/backup.ts')).backupFlags,
  },
  restore: {
    summary: 'put a backup in the place of the tape',
    run: async (args) => (await import('./tools/backup/restore.ts')).restore(args),
    flags: async () => (await import('./tools/backup/restore.ts')).restoreFlags,
  },
  conform: {
    summary: 'check a client against the rules of the contract',
    run: async (args) => (await import('./tools/conform/conform.ts')).conform(args),
    flags: async () => (await import('./tools/conform/conform.ts')).conformFlags,
  },
  key: {
    summary: 'make an API key',
    run: async (args) => (await import('./tools/key.ts')).key(args),
    flags: async () => (await import('./tools/key.ts')).keyFlags,
  },
  completion: {
    summary: 'print a script that completes commands and flags in bash, zsh or fish',
    run: async (args) => (await import('./tools/completion.ts')).openCompletion(loadCompletedCommands)(args),
    flags: async () => (await import('./tools/completion.ts')).completionFlags,
    words: async () => (await import('./tools/completion.ts')).completionShells,
  },
  help: {
    summary: 'explain a command',
    run: async ([name = '-']) => (name.startsWith('-') ? print(programHelp()) : commandNamed(name).run(['--help'])),
    flags: async () => ({}),
    words: async () => Object.keys(entries),
  },
  version: {
    summary: 'print the version',
    run: async (args) => {
      readFlags(commonFlags, args, { help: helpText('stocktape version', 'Prints the version of stocktape, and that of Node.') })
      return print(`${versionText}\n`)
    },
    flags: async () => commonFlags,
  },
}
const commands = new Map(Object.entries(entries))

/** Oldest Node that package.json allows. An older one lacks modules that the relay imports, and npm only warns about it. */
const OLDEST_NODE = [22, 18] as const

async function run(args: readonly string[]): Promise<number> {
  if (isNodeTooOld()) {
    process.stderr.write(`stocktape: Node ${OLDEST_NODE.join('.')} or later is needed, and this is ${process.versions.node}\n`)
    return EXIT_USAGE
  }
  const [first = ''] = args
  if (args.length === 1 && (first === '--help' || first === '-h')) return print(programHelp())
  if (args.length === 1 && (first === '--version' || first === '-V')) return print(`${versionText}\n`)
  const isCommand = first !== '' && !first.startsWith('-')
  const name = isCommand ? first : 'serve'
  return runToExitCode(commands.has(name) && name !== 'help' ? `stocktape${isCommand ? ` ${name}` : ''}` : 'stocktape', () =>
    commandNamed(name).run(isCommand ? args.slice(1) : args),
  )
}

function isNodeTooOld(): boolean {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  return major < OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor < OLDEST_NODE[1])
}

function commandNamed(name: string): CommandEntry {
  const command = commands.get(name)
  if (!command) throw new UsageError(`'${oneLine(name)}' is not a command. ${adviceFor(name, commands.keys())}`)
  return command
}

const programHelp = (): string =>
  helpText(
    'stocktape [COMMAND] [FLAG ...]',
    'The tape of tokenized stocks, over WebSocket and SSE.',
    { heading: 'Commands', terms: [...commands].map(([name, { summary }]) => [name, summary]) },
    {
      heading: 'Examples',
      terms: [
        ['stocktape', 'run the relay on a built-in chain, on http://127.0.0.1:8080'],
        ['stocktape --network base', 'run it on Base; each setting is a flag or an environment variable'],
        ['stocktape tail AAPLc', 'follow a stock'],
        ['stocktape doctor', 'find out why an upstream does not work'],
      ],
    },
    'stocktape serve --help explains all settings, stocktape COMMAND --help a command. -V prints the version.',
  )

function print(text: string): number {
  process.stdout.write(text)
  return EXIT_OK
}

const loadCompletedCommands = () =>
  Promise.all(
    [...commands].map(async ([name, { summary, flags, words }]) => ({
      name,
      summary,
      flags: await flags(),
      words: (await words?.()) ?? [],
    })),
  )

process.exitCode = await run(process.argv.slice(2))
