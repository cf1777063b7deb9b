/**
 * Statements as functions have them. A new thread of the parser reads each kind of expression several times slower the
 * first time, because it learns the grammar while it reads.
 */
export const EXAMPLE = [
  "let res := fetch(f'https://example.com/{event.uuid}?q={inputs.q}', {'method': 'POST', 'headers': {'Content-Type': 'application/json', 'Authorization': f'Bearer {inputs.token}'}, 'body': inputs.body})",
  "if (res.status >= 400) { throw Error(f'Error from the service (status {res.status}): {res.body}') }",
  "if (a = 1 and not empty(b)) { return null } else if (a.b in ['x', 'y'] or a.c like '$%') { print('a', a) } else { print(b) }",
  "for (let key, value in event.properties) { if (value != null and not (key like '$%')) { payload[key] := typeof(value) = 'object' ? jsonStringify(value) : toString(value) } }",
  'for (let i := 0; i < 10; i := i + 1) { list := arrayPushBack(list, i * 2 - 1) }',
  "let name := event.properties.name ?? person.properties.name ?? upper(trim('x'))",
  'fun send(body, attempt) { let again := attempt + 1; return send(body, again) }',
  "let parts := arrayMap(x -> concat(x, '-', name), ['a', 'b', 'c'])",
  'let made := arrayFilter((x, y) -> { return x > y }, [1, 2, (3, 4)])',
  'try { let parsed := jsonParse(body) } catch (e) { print(e.message) }',
  'while (a < 3 and b is not null) { a := a + 1 }',
  "payload.a.b := if(empty(x), 'none', x[1]) || 'text'",
];
