#!/bin/sh
# Checks that the layers of the house stay apart (ARCHITECTURE.md):
#
#     sh scripts/check_layers.sh [DIRECTORY]        DIRECTORY: the top of the source tree (here)
#
# include/headwise.h lists the layers from the ground up; cli, which has no public header, stands on top of them. A
# file of src/LAYER includes only <headwise/X.h> of its own layer and of lower ones, and private headers of its own
# folder; include/headwise/LAYER.h includes only lower ones. Only src/tensor may call BLAS, only src/cli may print or
# exit. Prints file:line for each fault and then fails.
set -eu

cd "${1:-.}"
[ -f include/headwise.h ] || { echo "check_layers: there is no include/headwise.h in $PWD" >&2; exit 2; }

faults=$(find include/headwise src \( -name '*.[ch]' -o -name '*.cc' \) -exec awk '
function fault(text) { print FILENAME ":" FNR ": " text }

# a/b/../c -> a/c
function normal(path) {
    while (path ~ /[^\/.]+\/\.\.\//) sub(/[^\/.]+\/\.\.\//, "", path)
    return path
}

function exists(path,   line, found) {
    found = (getline line < path) >= 0
    close(path)
    return found
}

function check_public(name) {
    if (!(name in rank)) fault("<headwise/" name ".h> is no layer that include/headwise.h lists")
    else if (rank[name] > rank[layer]) fault("layer " layer " includes <headwise/" name ".h>, a higher layer")
    else if (name == layer && public) fault("a header includes itself")
}

function check_private(name,   beside) {
    if (public) { fault("a public header includes the private \"" name "\""); return }
    beside = FILENAME
    sub(/[^\/]*$/, "", beside)
    beside = normal(beside name)
    if (!exists(beside)) beside = normal("src/" name)
    if (FILENAME ":" beside == "src/autograd/attention.c:src/tensor/attention_kernel.h") return
    if (!exists(beside)) fault("there is no \"" name "\" beside this file or under src")
    else if (index(beside, "src/" layer "/") != 1)
        fault("layer " layer " includes " beside ", a private header of another layer")
}

FNR == 1 {
    split(FILENAME, part, "/")
    public = part[1] == "include"
    layer = part[public ? 3 : 2]
    sub(/\.h$/, "", layer)
}

FILENAME == "include/headwise.h" {
    if (!/^#include <headwise\/.*\.h>/) next
    split($0, part, /[\/.]/)
    rank[part[2]] = ++layers
    rank["cli"] = layers + 1
    if (!exists("include/headwise/" part[2] ".h")) fault("there is no include/headwise/" part[2] ".h")
    next
}

FNR == 1 && !(layer in rank) { fault("layer " layer " is not listed in include/headwise.h") }

/^[ \t]*#[ \t]*include/ {
    name = $0
    sub(/^[^<"]*[<"]/, "", name)
    sub(/[>"].*$/, "", name)
    if (/"/) check_private(name)
    else if (name ~ /^headwise\//) { sub(/^headwise\//, "", name); sub(/\.h$/, "", name); check_public(name) }
    else if (name == "headwise.h")
        fault("the list of all layers is for users of the library; name the layers that are needed")
    else if (name ~ /blas/ && layer != "tensor") fault("only layer tensor calls BLAS")
    next
}

# A line of code, not of a comment: calls are looked for in it.
layer != "cli" && !public && !/^[ \t]*(\/?\*|\/\/)/ {
    code = $0
    gsub(/"([^"\\]|\\.)*"/, "\"\"", code)
    sub(/\/\*.*/, "", code)
    if (code ~ /(^|[^a-z0-9_])(printf|puts|putchar|perror|exit)[ \t]*\(/) fault("only layer cli prints or exits")
}
' include/headwise.h {} + | sort -t: -k1,1 -k2,2n)

[ -z "$faults" ] || { printf '%s\n' "$faults" >&2; exit 1; }
