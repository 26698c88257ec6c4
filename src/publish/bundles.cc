#include "publish/bundles.h"

namespace weft {
namespace {

// True for one file in kSegmentMin bytes, on average. The same on all machines (FNV-1a, mixed as in SplitMix64).
bool begins_segment(std::string_view name, std::uint64_t bytes) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  hash = (hash ^ (hash >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  hash = (hash ^ (hash >> 27U)) * 0x94d049bb133111ebULL;
  return (hash ^ (hash >> 31U)) % kSegmentMin < bytes;
}

class Plan {
 public:
  explicit Plan(const FileTable& table) : table_(table) {}

  std::vector<Bundle> run() {
    for (std::uint64_t i = 0; i < table_.directories(); ++i) {
      const FileTable::Directory dir = table_.directory(i);
      if (segment_ >= kSegmentMin) end_segment();
      for (std::uint64_t file = dir.first_file; file < dir.first_file + dir.files; ++file) add(file);
    }
    end_segment();
    end_bundle();
    return std::move(bundles_);
  }

 private:
  void add(std::uint64_t file) {
    const std::uint64_t bytes = table_.range(file).length;
    const bool full = bytes > kSegmentMax - segment_;
    if (full || (segment_ >= kSegmentMin && begins_segment(table_.name(file), bytes))) end_segment();
    segment_ += bytes;
    next_file_ = file + 1;
  }

  void end_segment() {
    if (segment_ == 0) return;
    if (bundle_.bytes + segment_ > kBundleMax) end_bundle();
    bundle_.segments.push_back({bundle_.bytes, segment_});
    bundle_.bytes += segment_;
    bundle_.files = next_file_ - bundle_.first_file;
    segment_ = 0;
  }

  void end_bundle() {
    if (bundle_.bytes == 0) return;
    const std::uint64_t next = bundle_.first_file + bundle_.files;
    bundles_.push_back(std::move(bundle_));
    bundle_ = {};
    bundle_.first_file = next;
  }

  const FileTable& table_;
  std::vector<Bundle> bundles_;
  Bundle bundle_;
  std::uint64_t segment_ = 0;    // bytes of the open segment
  std::uint64_t next_file_ = 0;  // number after the last added file
};

}  // namespace

std::vector<Bundle> plan_bundles(const FileTable& table) {
  return Plan(table).run();
}

}  // namespace weft
