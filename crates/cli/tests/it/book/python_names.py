"""Python on a page that cannot be parsed, and names that it uses and never defines: whoever copies it gets an error.

  python_names.py PAGE…

A block with an import is read as a program; others are parts of one. Names that begin with `my_` stand for the reader's own.
"""

import ast
import builtins
import re
import symtable
import sys

BLOCK = re.compile(r"^( *)```python\n(.*?)^\1```", re.M | re.S)
GIVEN = {*dir(builtins), "__file__", "__name__"}


def undefined(program):
    """The names that nothing in the program defines, in order."""
    top = symtable.symtable(program, "page", "exec")
    defined = {name.get_name() for name in top.get_symbols() if name.is_assigned() or name.is_imported()}
    scopes, used = [top], set()
    while scopes:
        scope = scopes.pop()
        scopes += scope.get_children()
        names = (name for name in scope.get_symbols() if name.is_referenced())
        used |= {name.get_name() for name in names if scope is top or name.is_global()}
    return sorted(name for name in used - defined - GIVEN if not name.startswith("my_"))


def main(pages):
    wrong = 0
    for page in pages:
        with open(page, encoding="utf-8") as file:
            text = file.read()
        for found in BLOCK.finditer(text):
            indent, program = found.groups()
            program = re.sub(f"^{indent}", "", program, flags=re.M)
            line = text.count("\n", 0, found.start()) + 1
            try:
                ast.parse(program)
            except SyntaxError as error:
                wrong += 1
                print(f"{page}:{line}: this program cannot be parsed: {error.msg} in line {error.lineno}")
                continue
            if not re.search(r"^(import|from) ", program, re.M):
                continue
            for name in undefined(program):
                wrong += 1
                print(f"{page}:{line}: this program uses {name}, which it does not define")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
