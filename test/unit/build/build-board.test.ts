import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ChildProgram } from '../../support/child-program.ts'

const repository = fileURLToPath(new URL('../../..', import.meta.url))

const page = '<div id="board">%EXPLORER_URL%</div><script type="module" src="./main.tsx"></script>'
const script = "import { render } from 'preact'\nrender(<p>old words</p>, document.body)\n"

/** A repository with the least of boards. */
class SmallBoard {
  readonly root = mkdtempSync(join(tmpdir(), 'stocktape-build-'))

  constructor() {
    onTestFinished(() => rmSync(this.root, { recursive: true }))
    for (const path of [
      'package-lock.json',
      'tsconfig.json',
      'src/board/tsconfig.json',
      'src/board/theme.js',
      'src/board/fonts/OFL.txt',
      'src/build/build-board.ts',
    ])
      cpSync(join(repository, path), join(this.root, path))
    writeFileSync(join(this.root, 'package.json'), '{"type":"module"}')
    symlinkSync(join(repository, 'node_modules'), join(this.root, 'node_modules'))
    this.write('src/board/index.html', page)
    this.write('src/board/embed/index.html', page.replace('./main', '../main'))
    this.write('src/board/main.tsx', script)
  }

  write(path: string, text: string): void {
    mkdirSync(dirname(join(this.root, path)), { recursive: true })
    writeFileSync(join(this.root, path), text)
  }

  async build(nodeEnv?: string): Promise<{ code: number | null; stderr: string }> {
    const env = { PATH: process.env.PATH, ...(nodeEnv && { NODE_ENV: nodeEnv }) }
    const program = new ChildProgram([process.execPath, 'src/build/build-board.ts'], { cwd: this.root, env })
    const code = await program.waitForExit()
    return { code, stderr: program.stderr }
  }

  /** Each file in dist by its path, without the digest. */
  built(): Record<string, string> {
    const paths = globSync('dist/**/*.*', { cwd: this.root }).filter((path) => !path.endsWith('.sha256'))
    return Object.fromEntries(paths.sort().map((path) => [path, readFileSync(join(this.root, path), 'utf8')]))
  }
}

it('the fonts of the board have at most 60 KB together', () => {
  const sizes = globSync('src/board/fonts/*.woff2', { cwd: repository }).map((path) => statSync(join(repository, path)).size)
  expect(sizes).toHaveLength(2)
  expect(sizes.reduce((sum, size) => sum + size)).toBeLessThanOrEqual(60 * 1_024)
})

describe('the build of the board', () => {
  it('happens when a source has changed, and only then', async () => {
    const board = new SmallBoard()
    expect(await board.build()).toEqual({ code: 0, stderr: '' })
    const first = board.built()
    expect(Object.keys(first)).toEqual([
      'dist/board/OFL.txt',
      expect.stringMatching(/^dist\/board\/assets\/main-[\w-]+\.js$/),
      expect.stringMatching(/^dist\/board\/assets\/theme-[\w-]+\.js$/),
      'dist/board/embed/index.html',
      'dist/board/index.html',
      'dist/board/licenses.md',
    ])
    expect(first['dist/board/OFL.txt']).toMatch(/Inter Project.*JetBrains Mono Project.*SIL OPEN FONT LICENSE/s)
    expect(first['dist/board/licenses.md']).toContain('## preact')
    expect(first['dist/board/index.html']).toMatch(/src="\.\/assets\/main-.*%EXPLORER_URL%/s)
    const { ino } = statSync(join(board.root, 'dist/board'))
    await board.build()
    expect(statSync(join(board.root, 'dist/board')).ino).toBe(ino)

    board.write('src/board/main.tsx', script.replace('old', 'new'))
    await board.build()
    const second = board.built()
    expect(Object.keys(second)).toHaveLength(6)
    expect(['new words', 'old words'].filter((words) => Object.values(second).join().includes(words))).toEqual(['new words'])
  })

  it('makes the same files in each environment, without the folders of this machine', async () => {
    const boards = await Promise.all(
      ['production', 'development', 'test'].map(async (nodeEnv) => {
        const board = new SmallBoard()
        // This package has other files for development.
        board.write('src/board/main.tsx', "import { createChart } from 'lightweight-charts'\ncreateChart(document.body)\n")
        await board.build(nodeEnv)
        expect(Object.values(board.built()).filter((text) => text.includes(board.root))).toHaveLength(0)
        return board.built()
      }),
    )
    expect(boards[1]).toEqual(boards[0])
    expect(boards[2]).toEqual(boards[0])
  })

  it('may happen several times at once', async () => {
    const board = new SmallBoard()
    const builds = await Promise.all([board.build(), board.build(), board.build()])
    expect(builds).toEqual(builds.map(() => ({ code: 0, stderr: '' })))
    expect(globSync('dist/*', { cwd: board.root })).toEqual(['dist/board'])
    expect(Object.keys(board.built())).toHaveLength(6)
  })

  it('fails with a mistake in a source, which it shows, and leaves the old board', async () => {
    const board = new SmallBoard()
    await board.build()
    const before = board.built()
    board.write('src/board/main.tsx', 'const = 1\n')
    const { code, stderr } = await board.build()
    expect([code, stderr]).toEqual([1, expect.stringMatching(/stocktape: the board is not built: .*main\.tsx:1:7/s)])
    expect(stderr).not.toContain('\u001b')
    expect(board.built()).toEqual(before)
  })

  it('is left out with one line where its tools are missing or its folder cannot be written', async () => {
    const board = new SmallBoard()
    board.write('dist', 'a file')
    const unwritable = await board.build()
    expect(unwritable).toEqual({
      code: 0,
      stderr: expect.stringMatching(/^stocktape: the board is not built: its folder .*dist'\n$/),
    })
    rmSync(join(board.root, 'node_modules'))
    mkdirSync(join(board.root, 'node_modules'))
    const withoutTools = await board.build()
    expect(withoutTools).toEqual({ code: 0, stderr: expect.stringMatching(/^stocktape: the board is not built: its tools .*\n$/) })
  })
})
