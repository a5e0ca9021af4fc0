import { execFileSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { settingFlags } from '../../../src/relay/config/serve-command-line.ts'

const run = (file: string, args: readonly string[]): string => execFileSync(file, args, { encoding: 'utf8' })
const stocktape = (...args: readonly string[]): string => run(process.execPath, ['src/main.ts', ...args])

const script = stocktape('completion', 'bash')
const [, commandTerms = ''] = /^Commands\n((?: {2}.*\n)+)/m.exec(stocktape('help')) ?? []
const commands = [...commandTerms.matchAll(/^ {2}(\w+) /gm)].map(([, name = '']) => name)

/** What bash proposes for the last word of a line, as it splits the line itself. */
const proposed = (...words: readonly string[]): string[] => {
  const complete = `eval "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); $(complete -p stocktape | grep -o '_stocktape'); printf '%s\\n' "\${COMPREPLY[@]}"`
  return run('bash', ['-c', complete, 'bash', script, 'stocktape', ...words])
    .trim()
    .split('\n')
    .filter((word) => word !== '')
}

describe('stocktape completion bash', () => {
  it('completes every command', () => {
    expect(commands).toContain('tail')
    expect(proposed('').sort()).toEqual([...commands].sort())
    expect(proposed('help', '').sort()).toEqual([...commands].sort())
  })

  it('completes every flag of the relay, also without its command', () => {
    const flags = Object.keys(settingFlags).map((name) => `--${name}`)
    expect(proposed('serve', '--')).toEqual(flags)
    expect(proposed('--port', '1', '--')).toEqual(flags)
  })

  it.each([
    [['ta'], ['tail']],
    [['--upstream-ws'], ['--upstream-ws-url', '--upstream-ws-url-file']],
    [
      ['serve', '--network', ''],
      ['base', 'base-sepolia'],
    ],
    [
      ['--network', '='],
      ['base', 'base-sepolia'],
    ],
    [['--log-level', '=', 'wa'], ['warn']],
    [['serve', '--demo', 't'], ['true']],
    [['serve', '--data-dir', ''], []],
    [['tail', '--sin'], ['--since']],
    [['tail', '--since', ''], []],
    [['tail', '--port'], []],
    [['completion', 'f'], ['fish']],
    [['nothing', '--'], []],
  ])('%j: %j', (words, expected) => {
    expect(proposed(...words)).toEqual(expected)
  })
})

it.each(['zsh', 'fish'])('stocktape completion %s has every command and every flag', (shell) => {
  const text = stocktape('completion', shell)
  for (const name of [...commands, ...Object.keys(settingFlags), 'since']) expect(text).toContain(name)
})
