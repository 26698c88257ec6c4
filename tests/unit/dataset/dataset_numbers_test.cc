#include "dataset/dataset_numbers.h"

#include <doctest/doctest.h>

#include "testing.h"
#include "weft/model/dataset.h"

namespace weft {
namespace {

File file_of(std::string path, FileRole role, std::uint64_t size) {
  File file;
  file.path = std::move(path);
  file.size = size;
  file.role = role;
  return file;
}

}  // namespace

TEST_CASE("each share has a number of its own, and the number says which") {
  using Numbers = ContainerNumbers;
  const std::uint64_t last = Numbers::kFixed + Numbers::kShares;
  CHECK(Numbers::share({}) == Numbers::kFixed);
  CHECK(Numbers::share({kShareSeeds - 1, kSharePartsMax, kSharePartsMax - 1}) == last - 1);
  for (const std::optional<std::uint64_t> seed : {std::optional<std::uint64_t>(), std::optional<std::uint64_t>(0),
                                                  std::optional<std::uint64_t>(kShareSeeds - 1)}) {
    std::uint64_t next = Numbers::share({seed});
    CHECK(Numbers::share_of(next) == ShareName{seed});
    for (std::uint64_t parts = 1; parts <= kSharePartsMax; ++parts) REQUIRE(Numbers::share({seed, parts}) == ++next);
    CHECK(Numbers::share_of(next) == ShareName{seed, kSharePartsMax});
    for (std::uint64_t parts = 1; parts <= kSharePartsMax; ++parts)
      for (std::uint64_t rank = 0; rank < parts; ++rank) {
        REQUIRE(Numbers::share({seed, parts, rank}) == ++next);
        if (rank == 0 || rank + 1 == parts) REQUIRE(Numbers::share_of(next) == ShareName{seed, parts, rank});
      }
  }
  CHECK(Numbers::path(0) == last);
}

TEST_CASE("the numbers of a data set follow from its manifest") {
  Manifest manifest;
  manifest.kind = VersionKind::dataset;
  manifest.files = {file_of("a/x.tar", FileRole::published, 5), file_of("b.tar", FileRole::published, 0),
                    file_of("", FileRole::bundle, 9), file_of("", FileRole::file_table, 1000),
                    file_of("b.tar", FileRole::record_table, 300)};
  const DatasetNumbers numbers(manifest, 7);
  CHECK(numbers.containers() == 2);
  CHECK(numbers.small() == 14);
  CHECK(numbers.container(0) == 1014);
  CHECK(numbers.container(1) == 1014 + ContainerNumbers::count(300));
  CHECK(numbers.end() == 1014 + ContainerNumbers::count(300) + ContainerNumbers::count(1000));
  CHECK(numbers.container_of(1014) == 0);
  CHECK(numbers.container_of(numbers.container(1) - 1) == 0);
  CHECK(numbers.container_of(numbers.end() - 1) == 1);
  CHECK(testing::must(count_nodes(manifest)) == numbers.end());
}

}  // namespace weft
