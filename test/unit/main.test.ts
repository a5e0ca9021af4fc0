import { describe, expect, it, type TestContext } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { settings } from '../../src/relay/config/settings.ts'
import { ChildProgram } from '../support/child-program.ts'

async function stocktape({ onTestFinished }: TestContext, ...args: readonly string[]) {
  const program = new ChildProgram([process.execPath, 'src/main.ts', ...args], { env: { PATH: process.env.PATH } })
  onTestFinished(() => program.kill())
  const code = await program.waitForExit()
  return { code, stdout: program.stdout, stderr: program.stderr }
}

describe.concurrent('stocktape', () => {
  it.for([[['--help']], [['-h']], [['help']]])('lists its commands and its settings for %j', async ([args = []], context) => {
    const { code, stdout, stderr } = await stocktape(context, ...args)
    expect([code, stderr]).toEqual([0, ''])
    for (const command of ['serve', 'tail', 'doctor']) expect(stdout).toMatch(new RegExp(`^  stocktape ${command} +\\w`, 'm'))
    for (const [name, { description }] of settings) expect(stdout).toContain(` ${name.padEnd(20)} ${description}`)
  })

  it.for([
    [['help', 'tail'], /^stocktape tail SYMBOL/],
    [['tail', '--help'], /^stocktape tail SYMBOL/],
    [['help', 'doctor'], /^stocktape doctor \[--rpc /],
    [['help', 'serve'], /^stocktape \[serve\]: run the relay\n/],
    [['--port', '1', '--help'], /^stocktape \[serve\]: run the relay\n/],
    [['--version'], new RegExp(`^${packageJson.version.replaceAll('.', '\\.')}\n$`)],
    [['serve', '--version'], new RegExp(`^${packageJson.version.replaceAll('.', '\\.')}\n$`)],
  ] as const)('answers %j', async ([args, text], context) => {
    const { code, stdout, stderr } = await stocktape(context, ...args)
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(text)
  })

  it.for([
    [['tial'], "stocktape: 'tial' is not a command. Did you mean tail? Try --help.\n"],
    [['AAPLc'], "stocktape: 'AAPLc' is not a command. Try --help.\n"],
    [['help', 'srve'], "stocktape: 'srve' is not a command. Did you mean serve? Try --help.\n"],
    [['constructor'], "stocktape: 'constructor' is not a command. Try --help.\n"],
    [['doctor', '--rcp=1'], "stocktape doctor: Unknown option '--rcp'. Did you mean --rpc? Try --help.\n"],
    [['--prot=1'], "stocktape: '--prot' is not a setting. Did you mean --port? Try --help.\n"],
    [['serve', '--prot=1'], "stocktape: '--prot' is not a setting. Did you mean --port? Try --help.\n"],
    [['serve', 'tail'], "stocktape: 'tail' is not a flag. Try --help.\n"],
  ] as const)('reports the mistake of %j in one line and exits with code 2', async ([args, line], context) => {
    expect(await stocktape(context, ...args)).toEqual({ code: 2, stdout: '', stderr: line })
  })

  it.for([
    ['20.19.5', 2],
    ['22.9.0', 2],
    ['22.18.0', 0],
    ['26.0.0', 0],
  ] as const)('on Node %s ends with %i', async ([version, expected], { onTestFinished }) => {
    const pretended = `Object.defineProperty(process.versions, 'node', { value: '${version}' })`
    const preload = ['--import', `data:text/javascript,${encodeURIComponent(pretended)}`]
    const program = new ChildProgram([process.execPath, ...preload, 'src/main.ts', '--version'], {
      env: { PATH: process.env.PATH },
    })
    onTestFinished(() => program.kill())
    expect(await program.waitForExit()).toBe(expected)
    const needed = packageJson.engines.node.replace('>=', '')
    expect(program.stderr).toBe(expected === 0 ? '' : `stocktape: Node ${needed} or later is needed, and this is ${version}\n`)
  })
})
