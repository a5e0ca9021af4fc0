import { writeSync } from 'node:fs'
import { relative } from 'node:path'
import type { Reporter, TestCase, TestModule } from 'vitest/node'

/** Tells the parent process of each finished test, and of each that failed, so that it can stop the run. */
export default class FirstFailure implements Reporter {
  onTestCaseResult(test: TestCase): void {
    const file = relative(process.cwd(), test.module.moduleId)
    const isFailed = test.result().state === 'failed'
    writeSync(3, `${JSON.stringify(isFailed ? { failed: { file, name: test.fullName } } : { passed: file })}\n`)
  }

  onTestModuleEnd(module: TestModule): void {
    if (module.errors().length > 0 || hasBrokenSuite(module))
      writeSync(3, `${JSON.stringify({ failed: { file: relative(process.cwd(), module.moduleId), name: '' } })}\n`)
  }
}

const hasBrokenSuite = (module: TestModule): boolean => [...module.children.allSuites()].some((suite) => suite.errors().length > 0)
