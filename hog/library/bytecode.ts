// Written by scripts/generate-hog-library.ts from library.hog.
// biome-ignore-all format: written by a program
import type { WrittenFunction } from './compile.ts';

export const written: WrittenFunction[] = [
  {"name":"arrayMap","params":["func","arr"],"code":[43,0,36,1,36,3,2,"values",1,33,1,36,4,2,"length",1,31,36,6,36,5,16,40,29,36,4,36,5,45,37,7,36,2,36,7,36,0,54,1,2,"arrayPushBack",2,37,2,36,5,33,1,6,37,5,39,-36,35,35,35,35,35,36,2,38,35]},
  {"name":"arrayFilter","params":["func","arr"],"code":[43,0,36,1,36,3,2,"values",1,33,1,36,4,2,"length",1,31,36,6,36,5,16,40,33,36,4,36,5,45,37,7,36,7,36,0,54,1,40,9,36,2,36,7,2,"arrayPushBack",2,37,2,36,5,33,1,6,37,5,39,-40,35,35,35,35,35,36,2,38,35]},
  {"name":"arrayExists","params":["func","arr"],"code":[36,1,36,2,2,"values",1,33,1,36,3,2,"length",1,31,36,5,36,4,16,40,26,36,3,36,4,45,37,6,36,6,36,0,54,1,40,2,29,38,36,4,33,1,6,37,4,39,-33,35,35,35,35,35,30,38]},
  {"name":"arrayCount","params":["func","arr"],"code":[33,0,36,1,36,3,2,"values",1,33,1,36,4,2,"length",1,31,36,6,36,5,16,40,31,36,4,36,5,45,37,7,36,7,36,0,54,1,40,7,33,1,36,2,6,37,2,36,5,33,1,6,37,5,39,-38,35,35,35,35,35,36,2,38,35]},
  {"name":"arrayReduce","params":["func","arr","initial"],"code":[36,2,36,1,36,4,2,"values",1,33,1,36,5,2,"length",1,31,36,7,36,6,16,40,26,36,5,36,6,45,37,8,36,3,36,8,36,0,54,2,37,3,36,6,33,1,6,37,6,39,-33,35,35,35,35,35,36,3,38,35]},
  {"name":"arraySort","params":["key","arr"],"code":[36,1,2,"values",1,36,2,36,0,36,2,2,"arrayMap",2,2,"arraySort",2,38,35]},
  {"name":"arrayReverseSort","params":["key","arr"],"code":[36,1,2,"values",1,36,2,36,0,36,2,2,"arrayMap",2,2,"arrayReverseSort",2,38,35]},
  {"name":"inCohort","params":["cohort_id","cohort_ids"],"code":[31,36,1,11,40,6,32,"inCohort() requires cohort membership to be loaded for this evaluation",2,"Error",1,49,36,1,36,2,2,"values",1,33,1,36,3,2,"length",1,31,36,5,36,4,16,40,25,36,3,36,4,45,37,6,36,0,36,6,11,40,2,29,38,36,4,33,1,6,37,4,39,-32,35,35,35,35,35,30,38]},
  {"name":"notInCohort","params":["cohort_id","cohort_ids"],"code":[31,36,1,11,40,6,32,"notInCohort() requires cohort membership to be loaded for this evaluation",2,"Error",1,49,36,1,36,2,2,"values",1,33,1,36,3,2,"length",1,31,36,5,36,4,16,40,25,36,3,36,4,45,37,6,36,0,36,6,11,40,2,30,38,36,4,33,1,6,37,4,39,-32,35,35,35,35,35,29,38]},
  {"name":"sortableSemver","params":["version"],"code":[31,36,0,11,40,3,43,0,38,36,0,32,"(\\d+(\\.\\d+)+)",2,"extractRegex",2,36,1,2,"empty",1,40,3,43,0,38,32,".",36,1,2,"splitByString",2,52,"lambda",1,0,11,36,0,2,"toInt",1,47,3,35,33,0,38,53,0,36,2,2,"arrayMap",2,38,35,35]},
];
