// SPDX-License-Identifier: Apache-2.0
// Exceptions of D: thrown deep, through scope guards and finally, chained, caught near and far.
import std.stdio;

__gshared size_t left;

int deep(int depth, int kind)
{
    scope (exit)
        left += depth;
    if (depth == 0)
    {
        if (kind == 0)
            throw new Exception("deep");
        int[] none;
        return none[kind];
    }
    try
        return deep(depth - 1, kind) + 1;
    finally
        left++;
}

void main()
{
    int caught;
    foreach (round; 0 .. 60)
    {
        try
            deep(round % 9, round % 2);
        catch (Exception)
            caught++;
        catch (Error)
            caught++;
    }
    writeln(caught, " ", left);
}
