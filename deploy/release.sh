#!/bin/sh
# Makes a release of the commit that is checked out, into dist/ (or $1): archives
# for linux, windows and macOS, Debian packages, the Kubernetes parts, SHA256SUMS.
# It builds a copy of the commit, so what is not committed is no part of it, and
# work can go on in the folder meanwhile.
#
# The same commit gives the same bytes, on whichever machine: paths are trimmed,
# nothing of git is stamped into the binary but what is given here, and all times
# in archives are that of the commit. TestRelease in deploy/package builds twice
# and compares.
#
# PLATFORMS="linux/amd64" makes only that; GO names the go to use. It wants Linux
# with GNU tar, zip and git. The folder is made anew when all is done: it must be a
# new one, an empty one, or that of an earlier release.
set -eu
cd "$(dirname "$0")/.."
GO=${GO:-go}
out=${1:-dist}
platforms=${PLATFORMS:-linux/amd64 linux/arm64 windows/amd64 darwin/amd64 darwin/arm64}
revision=$(git rev-parse HEAD)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
version=${VERSION:-$(git describe --tags --match 'v[0-9]*' 2>/dev/null || echo "0.0.0+$(git rev-parse --short=12 HEAD)")}
version=${version#v}
# In a Debian version a hyphen parts the packager's revision; git describe has two.
debversion=$(echo "$version" | tr - .)

if [ -n "$(ls -A "$out" 2>/dev/null)" ] && [ ! -f "$out/SHA256SUMS" ]; then
	echo "$out: holds files and is no release (there is no SHA256SUMS): name another folder" >&2
	exit 1
fi
mkdir -p "$out"
final=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
out=$work/out
mkdir "$work/src" "$out"
git archive HEAD | tar -xf - -C "$work/src"
chmod -R u=rwX,go=rX "$work/src" # whatever the umask
cd "$work/src"

v=github.com/prometheus/common/version
# pack DIR FILE: an archive whose bytes depend on names and contents alone.
pack() {
	find "$1" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
	find "$1" -type d -exec chmod 755 {} +
	find "$1" -type f -exec chmod 644 {} +
	find "$1" -type f -name 'sidecar*' ! -name '*.*' -exec chmod 755 {} +
	case $2 in
	*.zip) (cd "$work" && find "$(basename "$1")" -type f | LC_ALL=C sort | TZ=UTC zip -q -X "$2" -@) ;;
	*) tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --format=ustar -cf - "$(basename "$1")" | gzip -9n >"$2" ;;
	esac
}

dashboards() { # DIR: the boards alone, without their builder
	mkdir -p "$1"
	for f in dashboards/*.json; do
		[ ! -f "$f" ] || cp "$f" "$1/"
	done
}

for p in $platforms; do
	os=${p%/*} arch=${p#*/}
	name=sidecar-$version-$os-$arch
	dir=$work/$name
	mkdir -p "$dir"
	ext=
	[ "$os" = windows ] && ext=.exe
	CGO_ENABLED=0 GOOS=$os GOARCH=$arch GOFLAGS= GOAMD64=v1 GOARM64=v8.0 $GO build -trimpath -buildvcs=false \
		-ldflags "-s -w -buildid= -X $v.Version=$version -X $v.Revision=$revision" -o "$dir/sidecar$ext" ./cmd/sidecar
	# What README points at comes along, where it points: the pages, and a Prometheus
	# that finds the rules beside it.
	cp LICENSE README.md "$dir/"
	mkdir -p "$dir/rules" "$dir/systemd" "$dir/deploy"
	cp -R rules/load rules/steady "$dir/rules/"
	cp -R docs "$dir/" && rm -r "$dir/docs/gen"
	cp deploy/prometheus.yml "$dir/deploy/"
	dashboards "$dir/dashboards"
	if [ "$os" = linux ]; then cp deploy/systemd/sidecar.service "$dir/systemd/"; else rmdir "$dir/systemd"; fi
	if [ "$os" = windows ]; then pack "$dir" "$out/$name.zip"; else pack "$dir" "$out/$name.tar.gz"; fi
	if [ "$os" = linux ]; then
		find "$dir" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
		nfpm=$work/nfpm
		[ -x "$nfpm" ] || (cd deploy/package && $GO build -o "$nfpm" github.com/goreleaser/nfpm/v2/cmd/nfpm)
		ARCH=$arch VERSION=$debversion DIST=$dir "$nfpm" package -f deploy/package/nfpm.yaml -p deb -t "$out/sidecar_${debversion}_$arch.deb" >"$work/said" || { cat "$work/said" >&2; exit 1; }
	fi
	rm -rf "$dir"
	echo "$name"
done

dir=$work/sidecar-$version-kubernetes
mkdir -p "$dir"
cp -R deploy/kubernetes "$dir/"
pack "$dir" "$out/sidecar-$version-kubernetes.tar.gz"

cd "$out"
sha256sum -- * >"$work/SHA256SUMS"
mv "$work/SHA256SUMS" SHA256SUMS
chmod 644 -- *
rm -rf "$final"
mkdir "$final"
mv -- * "$final/"
echo "$final: $(ls "$final" | wc -l) files; the sums are in SHA256SUMS"
