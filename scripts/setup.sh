#!/bin/sh
# Installs what Headwise is built from and tested with, on Debian and its relatives:
#
#     sh scripts/setup.sh          to build, train and run the tests
#     sh scripts/setup.sh --ci     also what .ci/run needs: a second compiler and a checker of shell scripts
#
# Runs as root or through sudo, installs only what is missing, and does nothing where nothing is.
set -eu

# compiler, make, pkg-config | multiplication, YAML, JSON, gzip, Unicode, subwords | tests: Check, French spelling
packages="build-essential pkg-config
    libopenblas-dev libyaml-dev libjansson-dev zlib1g-dev libutf8proc-dev libsentencepiece-dev
    check hunspell hunspell-fr"

fail()
{
    echo "setup: $*" >&2
    exit 1
}

case "${1-}" in
"") ;;
--ci) packages="$packages clang shellcheck" ;;
*) fail "there is no option $1; usage: sh scripts/setup.sh [--ci]" ;;
esac

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    fail "this is not Debian or a relative of it (there is no apt-get). Install by hand a compiler for C11" \
        "and C++17, make, pkg-config, the development files of OpenBLAS, libyaml, jansson, zlib, utf8proc and SentencePiece, and" \
        "for the tests Check, hunspell and its French dictionary; then run make"
fi

missing=
for package in $packages; do
    status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || status=
    [ "$status" = installed ] || missing="$missing $package"
done
if [ -z "$missing" ]; then
    echo "setup: everything is installed already"
    exit 0
fi

as_root=
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null ||
        fail "only root can install packages, and there is no sudo; as root: apt-get install$missing"
    as_root=sudo
fi

# Two lists of words, the first an empty one for root.
# shellcheck disable=SC2086
install()
{
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q ||
        echo "setup: the lists of packages are old (see above)" >&2
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing
}

echo "setup: installing$missing"
install || fail "the packages cannot be installed (see above)"
echo "setup: done; next: make toy, or make check"
