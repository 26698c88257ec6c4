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
  Listings::Found find(Ino dir, ListingPlace place) {
    auto found = listings.find(vfs, dir, place);
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
  const auto begun = find(model, {}).listing;
  CHECK(begun->number != 0);
  CHECK(begun->entries.size() == 3);
  vfs.add_file("models/a/2/config.json", "{}");
  vfs.commit();
  const auto later = find(model, {}).listing;
  CHECK(later->entries.size() == 4);
  const auto gone_on = find(model, {begun->number, 2});
  CHECK(gone_on.listing == begun);
  CHECK_FALSE(gone_on.current);
  CHECK(find(model, {later->number, 2}).listing == later);
}

TEST_CASE_FIXTURE(Fixture, "a beginning shows each commit") {
  const auto first = find(model, {}).listing;
  CHECK(find(model, {}).listing == first);
  vfs.commit();
  CHECK(find(model, {}).listing != first);
}

TEST_CASE_FIXTURE(Fixture, "names that last are listed once; their attributes are of now at the beginning alone") {
  const auto begun = find(version, {}).listing;
  CHECK(begun->number == 0);
  vfs.commit();
  const auto gone_on = find(version, {0, 1});
  CHECK(gone_on.listing == begun);
  CHECK_FALSE(gone_on.current);
  CHECK(find(version, {}).current);
  CHECK(find(version, {}).listing != begun);
}

TEST_CASE_FIXTURE(Fixture, "a listing that is not known, or another directory's, is made anew") {
  const auto models = find(ino(kRootIno, "models"), {}).listing;
  CHECK(find(model, {models->number, 1}).listing->dir == model);
  CHECK(find(model, {12345, 1}).listing->entries.size() == 3);
  Listings next(1);  // of a server after this one
  const auto again = next.find(vfs, model, {models->number, 1});
  REQUIRE(again.ok());
  CHECK(again->listing->number != models->number);
}
