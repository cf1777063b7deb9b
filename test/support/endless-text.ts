/** An expression that takes the parser many seconds. Each name makes another one, which no cache knows. */
export function endlessText(name: string): string {
  let text = name;
  for (let depth = 0; depth < 8; depth += 1) text = `if(${text} = 1, (${text}), 2)`;
  return text;
}
