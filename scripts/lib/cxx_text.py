"""Reads comments, classes and method definitions out of C++ text, as far as scripts/layout needs them. It reads this
project's style (clang-format, no macro that opens a scope), not all of C++."""
import functools
import re

LITERAL = r'R"(?P<raw>[^()\s]*)\(.*?\)(?P=raw)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])\''
COMMENT = r"//[^\n]*|/\*.*?\*/"
SKIPPED = re.compile(f"{LITERAL}|(?P<comment>{COMMENT})", re.S)


@functools.cache
def code_of(text):
    """The text without comments and literals, line for line."""
    return SKIPPED.sub(lambda match: "\n" * match.group().count("\n"), text)


def comments_of(text):
    """(line, text) of each comment. It goes on in the next line, if that has a comment alone, in the same column."""
    run, first, last, column = [], 0, 0, 0
    for match in SKIPPED.finditer(text):
        if match["comment"] is None:
            continue
        before = text[text.rfind("\n", 0, match.start()) + 1:match.start()]
        line = text.count("\n", 0, match.start()) + 1
        if run and (before.strip() or line != last + 1 or len(before) != column):
            yield first, " ".join(run)
            run = []
        if not run:
            first, column = line, len(before)
        run.append(re.sub(r"\s+", " ", match["comment"].strip("/*! \n")))
        last = line
    if run:
        yield first, " ".join(run)


# A macro with arguments: a check or an annotation, never a declaration.
MACRO = re.compile(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]*\s*\((?:[^()]|\([^()]*\))*\)")
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.M)
TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.']*|::|->|[^\w\s]")
NO_NAMES = {"alignas", "decltype", "explicit", "noexcept", "requires"}
BRACKETS = {"(": ")", "[": "]", "{": "}"}


def after_bracket(tokens, at):
    """The index after the bracket that closes tokens[at]."""
    depth = 0
    while at < len(tokens):
        depth += (tokens[at] in BRACKETS) - (tokens[at] in BRACKETS.values())
        at += 1
        if depth == 0:
            break
    return at


def after_template(tokens):
    """The index after `template <…>`, 0 if the declaration is none."""
    at = 0
    while tokens[at:at + 2] == ["template", "<"]:
        depth, at = 1, at + 2
        while depth and at < len(tokens):
            depth += (tokens[at] == "<") - (tokens[at] == ">")
            at += 1
    return at


def parameters_at(head):
    """The index of the `(` that makes a declaration one of a function; None for other declarations."""
    depth, at = 0, after_template(head)
    while at < len(head):
        token = head[at]
        if token == "operator":
            at += 3 if head[at + 1:at + 2] == ["("] else 1
            return head.index("(", at) if "(" in head[at:] else None
        if token == "=" and depth == 0:
            return None
        depth += (token == "<") - (token == ">")
        if token == "[":
            at = after_bracket(head, at)
            continue
        if token == "(":
            if depth == 0 and head[at - 1] not in NO_NAMES:
                return at if re.match(r"[A-Za-z_]", head[at - 1]) and head[at + 1] not in "*&^" else None
            at = after_bracket(head, at)
            continue
        at += 1
    return None


def declarations(tokens):
    """(head, body) of each declaration of a scope; body is None where the declaration has none."""
    at, head, is_list = 0, [], False  # is_list: inside of a constructor's list of initialisers
    while at < len(tokens):
        token = tokens[at]
        if token == ":" and head in (["public"], ["private"], ["protected"]):
            head = []
        elif token == ";":
            yield head, None
            head, is_list = [], False
        elif token in "([":
            end = after_bracket(tokens, at)
            head += tokens[at:end]
            at = end
            continue
        elif token == "{":
            end = after_bracket(tokens, at)
            has_scope = scope_of(head)[0] is not None
            is_value = not has_scope and (head[-1:] == ["="] or parameters_at(head) is None or
                                          (is_list and head[-1] not in (")", "}")))
            if is_value:
                head += ["{", "}"]
            else:
                yield head, tokens[at + 1:end - 1]
                head, is_list = [], False
            at = end
            continue
        else:
            is_list = is_list or (token == ":" and head[-1:] == [")"])
            head.append(token)
        at += 1


def scope_of(head):
    """What a declaration with braces opens: ("namespace", name), ("class", name), ("enum", ""), or (None, "")."""
    words = head[after_template(head):]
    if "namespace" in words[:2]:
        return "namespace", "".join(words[words.index("namespace") + 1:])
    if "extern" in words[:1] and len(words) == 1:
        return "namespace", ""
    if "enum" in words[:1]:
        return "enum", ""
    for at, word in enumerate(words):
        if word in ("class", "struct", "union"):
            name = words[at + 1:]
            while name[:1] in (["["], ["alignas"]):
                name = name[after_bracket(name, name[0] == "alignas"):]
            end = next((i for i, token in enumerate(name) if token in (":", "final", "<")), len(name))
            return ("class", "".join(name[:end])) if "(" not in name[:end] else (None, "")
        if word == "(":
            break
    return None, ""


def read(text):
    """({class: methods}, {class of each method that is defined outside of its class}). Names are qualified by
    namespaces and outer classes. Deleted and defaulted functions, friends and types count as no methods."""
    methods, defined = {}, set()

    def is_method(head):
        return (head[:1] not in (["using"], ["typedef"], ["friend"], ["static_assert"])
                and head[-2:] not in (["=", "delete"], ["=", "default"]) and parameters_at(head) is not None)

    def visit(tokens, outer, in_class):
        for head, body in declarations(tokens):
            kind, name = scope_of(head) if body is not None else (None, "")
            if kind in ("namespace", "class"):
                inner = [*outer, *filter(None, name.split("::"))]
                if kind == "class":
                    methods.setdefault("::".join(inner), 0)
                visit(body, inner, kind == "class")
            elif kind is None and head and is_method(head):
                if in_class:
                    methods["::".join(outer)] += 1
                elif body is not None:
                    defined.add(owner(head, outer))

    def owner(head, outer):
        at, path = parameters_at(head), []
        end = next((i for i in range(at) if head[i] == "operator"), at - 1)
        end -= head[end - 1] == "~"
        while end >= 2 and head[end - 1] == "::":
            path.insert(0, head[end - 2])
            end -= 2
        return tuple(outer), tuple(path)

    visit(TOKEN.findall(MACRO.sub("", DIRECTIVE.sub("", code_of(text)))), [], False)
    return methods, {found for found in defined if found[1]}
