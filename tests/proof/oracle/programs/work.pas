// SPDX-License-Identifier: Apache-2.0
program work;
{$mode objfpc}
uses sysutils, classes;

function fibonacci(n: longint): longint;
begin
  if n < 2 then fibonacci := n else fibonacci := fibonacci(n - 1) + fibonacci(n - 2);
end;

procedure fails(depth: longint);
begin
  if depth = 0 then raise exception.create('deep');
  fails(depth - 1);
end;

var
  names: tstringlist;
  i, caught: longint;
begin
  names := tstringlist.create;
  for i := 1 to 300 do names.add(inttostr(i * 7919 mod 1000) + format(' %d %s', [i, 'x']));
  names.sort;
  caught := 0;
  for i := 1 to 20 do
    try
      fails(i);
    except
      on e: exception do inc(caught);
    end;
  writeln(fibonacci(15), ' ', names[0], ' ', names.count, ' ', caught);
  names.free;
end.
