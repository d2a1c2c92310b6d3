// Judges the results of http-tests/cache-tests by the suite's own rules.
// node cache_tests.mjs FOLDER RESULTS: prints the tests that count, with kind, result and detail.

import fs from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

const [folder, file] = process.argv.slice(2)
const load = name => import(pathToFileURL(path.resolve(folder, name)))
const { default: suites } = await load('tests/index.mjs')
const { determineTestResult, resultTypes } = await load('test-engine/lib/results.mjs')
const results = JSON.parse(fs.readFileSync(file))
const name = type => Object.keys(resultTypes).find(key => resultTypes[key] === type)

const judged = suites
  .flatMap(suite => suite.tests)
  .filter(test => !test.browser_only && test.kind !== 'check')
  .map(test => ({
    id: test.id,
    kind: test.kind ?? 'required',
    result: name(determineTestResult(suites, test.id, results)),
    detail: String(results[test.id])
  }))
console.log(JSON.stringify(judged))
