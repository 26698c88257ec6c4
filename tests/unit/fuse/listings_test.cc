#include "fuse/state/listings.h"

#include <doctest/doctest.h>

#include <string>

#include "fakes/memory_vfs.h"

using namespace weft;
using namespace weft::testing;

namespace {

struct Fixture {
  Fixture() {
    vfs.add_file("models/a/1/config.json", "{}");
    vfs.add_file("models/a/1/model.safetensors", "bytes");
    vfs.make_lasting("models/a/1");
    model = ino(ino(kRootIno, "models"), "a");
    version = ino(model, "1");
  }
  Ino ino(Ino dir, std::string_view name) {
    const auto found = vfs.lookup(dir, name);
    REQUIRE(found.ok());
    return found->ino;
  }
  Listings::Found find(Ino dir, ListingPlace place, Freshness::Time now) {
    auto found = listings.find(vfs, dir, place, now);
    REQUIRE(found.ok());
    return std::move(found).value();
  }

  MemoryVfs vfs;
  Listings listings{0};
  Ino model = 0, version = 0;
};

}  // namespace

TEST_CASE("a place is an offset that is not negative, and comes back") {
  const ListingPlace place{0x7fffffff, 4'000'000};
  CHECK(place.offset() > 0);
  CHECK(ListingPlace::at(place.offset()).number == place.number);
  CHECK(ListingPlace::at(place.offset()).index == place.index);
  CHECK(ListingPlace::at(-1).index == 0);
}

TEST_CASE_FIXTURE(Fixture, "who reads on finds the listing he began with, whatever others begin meanwhile") {
  const auto begun = find(model, {}, 1).listing;
  CHECK(begun->number != 0);
  CHECK(begun->entries.size() == 3);
  vfs.add_file("models/a/2/config.json", "{}");
  vfs.commit({model});
  const auto later = find(model, {}, 2).listing;
  CHECK(later->entries.size() == 4);
  const auto gone_on = find(model, {begun->number, 2}, 2);
  CHECK(gone_on.listing == begun);
  CHECK_FALSE(gone_on.current);
  CHECK(find(model, {later->number, 2}, 2).listing == later);
}

TEST_CASE_FIXTURE(Fixture, "a beginning shows each commit, also one that the kernel is not told of yet") {
  const auto first = find(model, {}, 1).listing;
  CHECK(find(model, {}, 1).listing == first);
  vfs.commit({});
  CHECK(find(model, {}, 1).listing != first);
}

TEST_CASE_FIXTURE(Fixture, "names that last are listed once; their attributes are of now at the beginning alone") {
  const auto begun = find(version, {}, 1).listing;
  CHECK(begun->number == 0);
  vfs.commit({version});
  const auto gone_on = find(version, {0, 1}, 2);
  CHECK(gone_on.listing == begun);
  CHECK_FALSE(gone_on.current);
  CHECK(find(version, {}, 2).current);
  CHECK(find(version, {}, 2).listing != begun);
}

TEST_CASE_FIXTURE(Fixture, "where nothing may be kept each beginning is made anew") {
  const auto first = find(version, {}, 0);
  CHECK(first.current);
  CHECK(find(version, {}, 0).listing != first.listing);
  CHECK_FALSE(find(version, {0, 1}, 0).current);
}

TEST_CASE_FIXTURE(Fixture, "a listing that is not known, or another directory's, is made anew") {
  const auto models = find(ino(kRootIno, "models"), {}, 1).listing;
  CHECK(find(model, {models->number, 1}, 1).listing->dir == model);
  CHECK(find(model, {12345, 1}, 1).listing->entries.size() == 3);
  Listings next(1);  // of a server after this one
  const auto again = next.find(vfs, model, {models->number, 1}, 1);
  REQUIRE(again.ok());
  CHECK(again->listing->number != models->number);
}
