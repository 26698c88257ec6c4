#include "fuse/single/dispatch.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace weft {
namespace {

struct Seen {
  Part part;
  std::vector<std::string> arguments;
  bool operator==(const Seen&) const = default;
};

Seen seen(const std::vector<const char*>& argv) {
  const Call call = call_of(argv);
  return {call.part, {call.arguments.begin(), call.arguments.end()}};
}

using Words = std::vector<std::string>;

TEST_CASE("the name says which program it is") {
  CHECK(seen({"weft", "ls"}) == Seen{Part::weft, Words{"ls"}});
  CHECK(seen({"./weft-0.1.0-x86_64", "mount", "/mnt"}) == Seen{Part::weft, Words{"mount", "/mnt"}});
  CHECK(seen({"mount.weft", "/store", "/mnt"}) == Seen{Part::mount, Words{"/store", "/mnt"}});
  CHECK(seen({"/sbin/mount.fuse.weft", "-h"}) == Seen{Part::mount, Words{"-h"}});
  CHECK(seen({"/opt/mount.weft/weft", "ls"}) == Seen{Part::weft, Words{"ls"}});
  CHECK(seen({"mount.weft.old", "ls"}) == Seen{Part::weft, Words{"ls"}});
}

TEST_CASE("the first argument says it too") {
  CHECK(seen({"weft", "mount.weft", "/store", "/mnt"}) == Seen{Part::mount, Words{"/store", "/mnt"}});
  CHECK(seen({"weft", "ls", "mount.weft"}) == Seen{Part::weft, Words{"ls", "mount.weft"}});
  CHECK(seen({"weft", "./mount.weft"}) == Seen{Part::weft, Words{"./mount.weft"}});
  CHECK(seen({"mount.weft", "mount.weft", "/mnt"}) == Seen{Part::mount, Words{"mount.weft", "/mnt"}});
}

TEST_CASE("a call without words") {
  CHECK(seen({}) == Seen{Part::weft, Words{}});
  CHECK(seen({"weft"}) == Seen{Part::weft, Words{}});
  CHECK(seen({"mount.weft"}) == Seen{Part::mount, Words{}});
  CHECK(seen({""}) == Seen{Part::weft, Words{}});
}

}  // namespace
}  // namespace weft
