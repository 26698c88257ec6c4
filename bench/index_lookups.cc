// Measures lookups in the index. `index_lookups STORE BLOBS` makes a store whose index has BLOBS blobs (places only, no
// bytes), and looks up random blobs, after a warm-up. Prints JSON.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <vector>

#include "base/text.h"
#include "os/sys.h"
#include "store/store_impl.h"

namespace {

using namespace weft;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kBatch = 10'000;     // blobs per commit
constexpr std::uint64_t kLookups = 400'000;  // in total
constexpr std::uint64_t kPerSnapshot = 64;   // lookups per snapshot, about as many as a small publish

ContentId blob_id(std::uint64_t i) {
  std::mt19937_64 random(i);
  ContentId id;
  id.length = 4096 + i % 512 * 64;
  for (std::uint8_t& byte : id.root.bytes) byte = static_cast<std::uint8_t>(random());
  return id;
}

Status fill(StoreImpl& store, std::uint64_t blobs) {
  for (std::uint64_t begin = 0; begin < blobs; begin += kBatch) {
    WEFT_TRY(auto writer, store.parts().blobs.write());
    for (std::uint64_t i = begin; i < std::min(begin + kBatch, blobs); ++i)
      WEFT_CHECK(writer->put(blob_id(i), BlobPlace{i / 1000 + 1, i % 1000 * 65'536}));
    WEFT_CHECK(writer->commit());
  }
  return {};
}

Result<double> lookups_per_second(StoreImpl& store, std::uint64_t blobs) {
  std::mt19937_64 random(1);
  std::vector<ContentId> wanted(kLookups);
  for (ContentId& id : wanted) id = blob_id(random() % blobs);
  auto begin = Clock::now();
  for (std::uint64_t i = 0; i < kLookups; i += kPerSnapshot) {
    WEFT_TRY(auto index, store.parts().blobs.read());
    for (std::uint64_t j = i; j < std::min(i + kPerSnapshot, kLookups); ++j) {
      WEFT_TRY(auto place, index->find(wanted[j]));
      if (!place) return Error{Errc::internal, "a blob is missing"};
    }
  }
  return static_cast<double>(kLookups) / std::chrono::duration<double>(Clock::now() - begin).count();
}

Status measure(const std::string& path, std::uint64_t blobs) {
  WEFT_CHECK(Store::create(path, CreateOptions{}));
  OpenOptions options;
  options.write = true;
  WEFT_TRY(auto store, StoreImpl::open(path, options));
  WEFT_CHECK(fill(*store, blobs));
  WEFT_TRY(double warm_up, lookups_per_second(*store, blobs));
  static_cast<void>(warm_up);
  std::vector<double> runs;
  for (int i = 0; i < 5; ++i) {
    WEFT_TRY(double run, lookups_per_second(*store, blobs));
    runs.push_back(run);
  }
  std::sort(runs.begin(), runs.end());
  WEFT_TRY(auto st, stat_file(path + "/index/data.mdb"));
  std::printf("{\"blobs\": %llu, \"lookups_per_second\": %.0f, \"bytes_per_blob\": %.1f}\n",
              static_cast<unsigned long long>(blobs), runs[2],
              static_cast<double>(st.st_blocks) * 512 / static_cast<double>(blobs));
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t blobs = argc == 3 ? parse_u64(argv[2]).value_or(0) : 0;
  if (blobs == 0) {
    std::fprintf(stderr, "usage: index_lookups STORE BLOBS\n");
    return 2;
  }
  Status status = measure(argv[1], blobs);
  if (!status.ok()) std::fprintf(stderr, "index_lookups: %s\n", status.error().message.c_str());
  return status.ok() ? 0 : 1;
}
