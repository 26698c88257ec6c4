#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <random>

#include "allocation.h"
#include "base/limits.h"
#include "dcp_files.h"

using namespace weft;
using namespace weft::testing;

namespace {

// Returns the bytes of a tensor's parts.
std::string bytes_of(const Checkpoint& checkpoint, const Layout& layout, const FoundTensor& tensor) {
  std::string out;
  for (const TensorPart& part : tensor.parts)
    out += checkpoint.files.at(layout.others[part.file - 1]).substr(part.offset, part.length);
  return out;
}

const FoundTensor& tensor_of(const Layout& layout, std::string_view name) {
  const auto found = std::ranges::find(layout.tensors, name, &FoundTensor::name);
  REQUIRE(found != layout.tensors.end());
  return *found;
}

std::string why_opaque(const std::string& bytes) {
  MemoryGroup group(".metadata", bytes, {});
  auto layout = parse_file("dir/.metadata", group);
  REQUIRE(layout.ok());
  CHECK(layout->format.empty());
  CHECK(layout->tensors.empty());
  REQUIRE_FALSE(layout->metadata.empty());
  CHECK(layout->metadata[0].first == kNoTensors);
  return layout->metadata[0].second;
}

}  // namespace

TEST_CASE("dcp: shards of rows are parts of one tensor") {
  const Checkpoint checkpoint = dcp_rows();
  const Layout layout = checkpoint.layout();
  CHECK(layout.format == "dcp");
  CHECK(layout.hidden.empty());
  const FoundTensor& tensor = tensor_of(layout, "w");
  CHECK(tensor.dtype == DType::f32);
  CHECK(tensor.shape == Shape{4, 2});
  CHECK(tensor.grid.empty());
  std::string expected;
  for (char c = 0; c < 32; ++c) expected += c;
  CHECK(bytes_of(checkpoint, layout, tensor) == expected);
  CHECK(bytes_of(checkpoint, layout, tensor_of(layout, "s")) == "\7");
}

TEST_CASE("dcp: shards of columns are boxes") {
  const Checkpoint checkpoint = dcp_columns();
  const Layout layout = checkpoint.layout();
  const FoundTensor& tensor = tensor_of(layout, "w");
  CHECK(tensor.grid == Borders{0, 4, 0, 1, 2});
  REQUIRE(tensor.parts.size() == 2);
  CHECK(bytes_of(checkpoint, layout, tensor).substr(16, 2) == "23");
}

TEST_CASE("dcp: a tensor in one shard may have strides, and an empty one has no parts") {
  Checkpoint turned;
  turned.shard({0, 0}, {4, 2}, dcp_saved({4, 2}, {1, 4}, 0), "a.distcp");
  const Layout layout = turned.layout();
  CHECK(tensor_of(layout, "w").strides == Strides{1, 4});
  Checkpoint empty(PNumbers{0, 2});
  empty.shard({0, 0}, {0, 2}, dcp_saved({0, 2}), "a.distcp");
  CHECK(tensor_of(empty.layout(), "w").parts.empty());
  Checkpoint uneven;
  uneven.shard({0, 0}, {4, 2}, dcp_saved({4, 2}), "a.distcp").shard({4, 0}, {0, 2}, dcp_saved({0, 2}), "a.distcp");
  CHECK(tensor_of(uneven.layout(), "w").parts.size() == 1);
}

TEST_CASE("dcp: pickled values are hidden, and the globals are listed") {
  Checkpoint checkpoint = dcp_rows();
  checkpoint.value("step", "bytes").value("evil", zip_file({{"m/data.pkl", p_file(p_global("os", "remove"))}}));
  const Layout layout = checkpoint.layout();
  CHECK(layout.tensors.size() == 2);
  REQUIRE(layout.hidden.size() == 2);
  CHECK(layout.hidden[0].name == "evil");
  CHECK(layout.hidden[1].name == "step");
  CHECK(layout.hidden[1].bytes == 5);
  CHECK(layout.hidden[1].why == "a pickled value, no tensor");
  REQUIRE(layout.metadata.size() == 2);
  CHECK(layout.metadata[0].first == kGlobals);
  CHECK(layout.metadata[1].second.find("os.system") != std::string::npos);
  CHECK(layout.metadata[1].second.find("os.remove") != std::string::npos);
}

TEST_CASE("dcp: a tensor whose shards do not fit together is hidden") {
  CHECK(Checkpoint().shard({0, 0}, {3, 2}, dcp_saved({3, 2}), "a.distcp").why_hidden().find("end at 4, got 3") !=
        std::string::npos);
  CHECK(dcp_rows().shard({1, 0}, {1, 2}, dcp_saved({1, 2}), "a.distcp").why_hidden().find("no grid") !=
        std::string::npos);
  CHECK(Checkpoint()
            .shard({0, 0}, {3, 2}, dcp_saved({3, 2}), "a.distcp")
            .shard({3, 0}, {1, 2}, dcp_saved({4, 2}, 0, "ByteStorage"), "a.distcp")
            .why_hidden() == "a shard of another shape than .metadata says");
  CHECK(Checkpoint()
            .shard({0, 0}, {3, 2}, dcp_saved({3, 2}), "a.distcp")
            .shard({3, 0}, {1, 2}, dcp_saved({1, 2}, 0, "ByteStorage"), "a.distcp")
            .why_hidden() == "shards of several types");
  CHECK(Checkpoint()
            .shard({0, 0}, {2, 2}, dcp_saved({2, 2}, {1, 2}, 0), "a.distcp")
            .shard({2, 0}, {2, 2}, dcp_saved({2, 2}), "a.distcp")
            .why_hidden() == "a shard whose elements are not in C order");
  CHECK(Checkpoint({4, 4})
            .shard({0, 0}, {2, 2}, dcp_saved({2, 2}), "a.distcp")
            .shard({0, 2}, {2, 2}, dcp_saved({2, 2}), "a.distcp")
            .shard({2, 2}, {2, 2}, dcp_saved({2, 2}), "b.distcp")
            .why_hidden() == "its boxes are no grid: some overlap, are missing, or end at other places than others");
  CHECK(Checkpoint().shard({1, 0}, {4, 2}, dcp_saved({4, 2}), "a.distcp").why_hidden().find("borders") !=
        std::string::npos);
  CHECK(dcp_rows().described({9, 9}, {1, 1}).why_hidden() == ".metadata has no place for a shard");
  CHECK(Checkpoint().why_hidden() == "it has no shards");
  CHECK(Checkpoint().shard({0}, {4}, dcp_saved({4}), "a.distcp").why_hidden() ==
        "a box has other dimensions than the tensor");
}

TEST_CASE("dcp: a file that is not beside .metadata hides its tensors") {
  Checkpoint checkpoint = dcp_rows();
  checkpoint.files.erase("b.distcp");
  CHECK(checkpoint.why_hidden() == "no file b.distcp is beside .metadata");
  for (const char* name : {"../x", "/etc/passwd", "sub/a.distcp"}) {
    Checkpoint elsewhere;
    elsewhere.files[name] = "";
    elsewhere.shard({0, 0}, {4, 2}, dcp_saved({4, 2}), name);
    CHECK(elsewhere.why_hidden() == fmt::format("no file {} is beside .metadata", name));
  }
  Checkpoint unnamed;
  unnamed.described({0, 0}, {4, 2}).place({0, 0}, "", 0, 10);
  CHECK(unnamed.why_hidden() == "no file  is beside .metadata");
}

TEST_CASE("dcp: places beyond their file, and shards that share bytes, hide the tensor") {
  const auto placed = [](std::uint64_t at, std::uint64_t length, const std::string& transforms = "N") {
    Checkpoint checkpoint;
    checkpoint.files["a.distcp"] = dcp_saved({4, 2});
    checkpoint.described({0, 0}, {4, 2}).place({0, 0}, "a.distcp", at, length, transforms);
    return checkpoint.why_hidden();
  };
  const std::uint64_t size = dcp_saved({4, 2}).size();
  CHECK(placed(0, size + 1) == "a shard that ends after a.distcp");
  CHECK(placed(size + 1, 0) == "a shard that ends after a.distcp");
  CHECK(placed(INT64_MAX, INT64_MAX) == ".metadata has no place for a shard");
  CHECK(placed(0, UINT64_MAX) == ".metadata has no place for a shard");
  CHECK(placed(1, 1ULL << 61U) == "a shard that ends after a.distcp");
  CHECK(placed(0, size - 1).find("zip") != std::string::npos);
  CHECK(placed(0, 0).find("zip") != std::string::npos);
  CHECK(placed(0, size, p_list({p_text("zstd")})) == "its shards are compressed, or transformed otherwise");
  Checkpoint twice;
  twice.shard({0, 0}, {2, 2}, dcp_saved({2, 2}), "a.distcp")
      .described({2, 0}, {2, 2})
      .place({2, 0}, "a.distcp", 0, size);
  twice.files["a.distcp"] += std::string(size, ' ');
  CHECK(twice.why_hidden().find("zip") != std::string::npos);
  Checkpoint same;
  const std::string shard = dcp_saved({2, 2});
  same.shard({0, 0}, {2, 2}, shard, "a.distcp").described({2, 0}, {2, 2}).place({2, 0}, "a.distcp", 0, shard.size());
  CHECK(same.why_hidden() == "its shards overlap others");
}

TEST_CASE("dcp: the shards of a tensor that weft cannot show are cuts, if they are worth it") {
  const std::string shard(limits::kCutMin, 'z'), packed = p_list({p_text("zstd")});
  Checkpoint compressed;
  compressed.files = {{"a.distcp", "12" + shard}, {"b.distcp", shard}, {"s.distcp", dcp_saved({}, 7, "ByteStorage")}};
  compressed.described({0, 0}, {2, 2}).place({0, 0}, "a.distcp", 2, shard.size(), packed);
  compressed.described({2, 0}, {1, 2}).place({2, 0}, "a.distcp", 2, shard.size() - 1, packed);  // too short
  compressed.described({3, 0}, {1, 2}).place({3, 0}, "b.distcp", 0, shard.size(), packed);
  // The places of these rows are not within a file beside .metadata, and the last row has no place.
  for (const auto& [row, file] :
       std::initializer_list<std::pair<unsigned, const char*>>{{4, "a.distcp"}, {5, "none.distcp"}, {6, "../b.distcp"}})
    compressed.described({row, 0}, {1, 2}).place({row, 0}, file, 3, shard.size(), packed);
  compressed.described({7, 0}, {1, 2});
  CHECK(compressed.why_hidden() == "its shards are compressed, or transformed otherwise");
  const Layout layout = compressed.layout();
  REQUIRE(layout.cuts.size() == 2);
  CHECK(layout.others.at(layout.cuts[0].file - 1) == "a.distcp");
  CHECK(layout.cuts[0].offset == 2);
  CHECK(layout.cuts[0].length == shard.size());
  CHECK(layout.others.at(layout.cuts[1].file - 1) == "b.distcp");
  CHECK(layout.cuts[1].offset == 0);
  CHECK(dcp_rows().layout().cuts.empty());
}

TEST_CASE("dcp: an incomplete or strided tensor, and a pickled value, are cuts") {
  const std::string half = dcp_saved({512, 2});
  const auto cuts_of = [](const Checkpoint& checkpoint) { return checkpoint.layout().cuts; };
  REQUIRE(half.size() >= 4096);
  CHECK(cuts_of(Checkpoint({1024, 2}).shard({0, 0}, {512, 2}, half, "a.distcp")).size() == 1);
  CHECK(cuts_of(Checkpoint({1024, 2})
                    .shard({0, 0}, {512, 2}, dcp_saved({512, 2}, {1, 512}, 0), "a.distcp")
                    .shard({512, 0}, {512, 2}, half, "b.distcp"))
            .size() == 2);
  CHECK(cuts_of(
            Checkpoint({1024, 2}).shard({0, 0}, {512, 2}, half, "a.distcp").shard({512, 0}, {512, 2}, half, "a.distcp"))
            .empty());
  CHECK(cuts_of(dcp_rows().value("step", std::string(limits::kCutMin, 'v'))).size() == 1);
  CHECK(cuts_of(dcp_rows().value("step", std::string(limits::kCutMin - 1, 'v'))).empty());
}

TEST_CASE("dcp: a file .metadata of another program is opaque") {
  CHECK_FALSE(why_opaque("").empty());
  CHECK_FALSE(why_opaque("{\"a\": 1}").empty());
  CHECK(why_opaque(p_file("}")) == "expected the metadata of a distributed checkpoint, got another pickle");
  CHECK(why_opaque(p_file(p_object("Metadata", {{"state_dict_metadata", "}"}}))).starts_with("expected the metadata"));
  MemoryGroup shard("__0_0.distcp", dcp_saved({4, 2}), {});
  const auto layout = parse_file("dir/__0_0.distcp", shard);
  REQUIRE(layout.ok());
  CHECK(layout->format.empty());
  CHECK(layout->tensors.empty());
  CHECK(layout->metadata.empty());
}

TEST_CASE("dcp: items whose parts are malformed are hidden") {
  const auto why = [](const std::string& described) {
    MemoryGroup group(
        ".metadata",
        p_file(p_object("Metadata", {{"state_dict_metadata", p_dict({{"w", described}})}, {"storage_data", "}"}})), {});
    const auto layout = parse_file("dir/.metadata", group);
    REQUIRE(layout.ok());
    REQUIRE(layout->hidden.size() == 1);
    return layout->hidden[0].why;
  };
  const std::string chunk = p_object("ChunkStorageMetadata", {{"offsets", p_size({0})}, {"sizes", "N"}});
  CHECK(why("N") == "a pickled value, no tensor");
  CHECK(why(p_object("T", {{"chunks", "]"}})) == "its shape is none that weft can read");
  CHECK(why(p_object("T", {{"size", p_size(PNumbers(33, 1))}, {"chunks", "]"}})) ==
        "its shape is none that weft can read");
  CHECK(why(p_object("T", {{"size", p_size({1})}, {"chunks", p_list({chunk})}})) ==
        "a shard whose place in the tensor weft cannot read");
  CHECK(why(p_object("T", {{"size", p_size({1})}, {"chunks", "]"}})) == "it has no shards");
}

TEST_CASE("dcp: shards that many tensors share are read a bounded number of times") {
  // Each of 1,000 tensors has the one list of 1,000 shards.
  std::string list = "](";
  const std::string chunk = p_object("ChunkStorageMetadata", {{"offsets", p_size({0})}, {"sizes", p_size({1})}});
  for (int i = 0; i < 1000; ++i) list += i == 0 ? chunk + "q\1" : "h\1";
  list += "eq\2";
  std::string items = "}(";
  for (int i = 0; i < 1000; ++i)
    items += p_text(std::to_string(i)) + p_object("T", {{"size", p_size({1000})}, {"chunks", i == 0 ? list : "h\2"}});
  CHECK(why_opaque(p_file(p_object("Metadata", {{"state_dict_metadata", items + "u"}, {"storage_data", "}"}}))) ==
        "pickle: its values are shared too often");
}

TEST_CASE("dcp: texts and shapes that a pickle repeats take no memory again") {
  // 2,000 places of one name in one file, and a tensor that names its only shard 2,000 times.
  const auto memory = [](std::size_t text_bytes, std::size_t dimensions) {
    const std::string file(text_bytes, 'f'), name(text_bytes, 'n'), shape = p_numbers(PNumbers(dimensions, 1));
    std::string places = "}(", shards = "](";
    for (unsigned i = 0; i < 2000; ++i) {
      const bool first = i == 0;
      places += p_object("MetadataIndex", {{"fqn", first ? p_text(name) + "q\1" : "h\1"},
                                           {"offset", first ? shape + "q\3" : p_numbers({i})}}) +
                p_object("_StorageInfo", {{"relative_path", first ? p_text(file) + "q\2" : "h\2"},
                                          {"offset", p_small(7)},
                                          {"length", p_small(7)}});
      shards += first ? p_object("Chunk", {{"offsets", "h\3"}, {"sizes", "h\3"}}) + "q\4" : "h\4";
    }
    const std::string tensor = p_object("T", {{"size", p_numbers({1})}, {"chunks", shards + "e"}});
    // The places come first, so that the shards can repeat their texts.
    const std::string metadata =
        p_file(p_object("Metadata", {{"storage_data", places + "u"}, {"state_dict_metadata", "}(h\1" + tensor + "u"}}));
    reset_allocations();
    CHECK(must(parts_of_checkpoint({metadata})).files == std::vector<CheckpointFile>{{file, 14}});
    return allocations().total;
  };
  CHECK(memory(4000, 32) < memory(40, 1) + (1U << 20U));
}

TEST_CASE("dcp: the metadata names each file once, in order, with the bytes that it has at least") {
  Checkpoint checkpoint = dcp_columns();
  checkpoint.shard({9, 9}, {1, 1}, "x", "c.distcp");
  checkpoint.value("step", "bytes").place({0, 0}, "../x", 7, 1);
  std::vector<CheckpointFile> files = {{"../x", 8}};
  for (const auto& [name, bytes] : checkpoint.files) files.push_back({name, bytes.size()});
  CHECK(must(parts_of_checkpoint({checkpoint.metadata()})).files == files);
  CHECK_FALSE(parts_of_checkpoint({"no pickle"}).ok());
}

TEST_CASE("dcp: a checkpoint asks for the bytes up to the end of its last shard, in whatever order they are placed") {
  const auto bytes_of_a = [](const Checkpoint& checkpoint) {
    const auto files = must(parts_of_checkpoint({checkpoint.metadata()})).files;
    return std::ranges::find(files, "a.distcp", &CheckpointFile::name)->bytes;
  };
  CHECK(bytes_of_a(Checkpoint().place({0, 0}, "a.distcp", 90, 10).place({1, 0}, "a.distcp", 0, 90)) == 100);
  CHECK(bytes_of_a(Checkpoint().place({0, 0}, "a.distcp", INT64_MAX, limits::kVersionBytesMax)) ==
        INT64_MAX + limits::kVersionBytesMax);
  // The reader hides what lacks a byte of these.
  Checkpoint whole = dcp_rows();
  CHECK(whole.layout().hidden.empty());
  CHECK(bytes_of_a(whole) == whole.files["a.distcp"].size());
  whole.files["a.distcp"].pop_back();
  CHECK(whole.why_hidden() == "a shard that ends after a.distcp");
}

namespace {

// One rank of a checkpoint that was saved without collectives: "w" in rows, and "s" whole on each rank.
Checkpoint rank_of(unsigned rank, unsigned rows, unsigned before) {
  Checkpoint one;
  one.files.clear();
  one.shard({before, 0}, {rows, 2}, dcp_saved({rows, 2}, 8 * before), fmt::format("__{}_0.distcp", rank));
  one.files["s.distcp"] = dcp_saved({}, 7, "ByteStorage");
  return one;
}

// The files of ranks with 1 and 3 rows of "w", with the metadata of each.
std::map<std::string, std::string> two_ranks() {
  std::map<std::string, std::string> files;
  for (unsigned rank = 0; rank < 2; ++rank) {
    Checkpoint one = rank == 0 ? rank_of(0, 1, 0) : rank_of(1, 3, 1);
    // Both have the same empty rows.
    one.shard({4, 0}, {0, 2}, dcp_saved({0, 2}), fmt::format("__{}_0.distcp", rank));
    files.insert(one.files.begin(), one.files.end());
    files[rank_metadata(rank)] = one.metadata();
  }
  return files;
}

Layout ranks_layout(std::map<std::string, std::string> files, const std::string& main) {
  const std::string text = files.at(main);
  files.erase(main);
  MemoryGroup group(main, text, files);
  auto layout = parse_file("dir/" + main, group);
  if (!layout.ok()) FAIL(layout.error().message);
  return *std::move(layout);
}

}  // namespace

TEST_CASE("dcp: without collectives, the ranks' own metadata is one checkpoint") {
  const auto files = two_ranks();
  const Layout layout = ranks_layout(files, "__0.metadata");
  CHECK(layout.format == "dcp");
  const FoundTensor& tensor = tensor_of(layout, "w");
  CHECK(tensor.shape == Shape{4, 2});
  CHECK(tensor.grid.empty());
  std::string bytes, expected;
  for (const TensorPart& part : tensor.parts)
    bytes += files.at(layout.others[part.file - 1]).substr(part.offset, part.length);
  for (char c = 0; c < 32; ++c) expected += c;
  CHECK(bytes == expected);
  REQUIRE(layout.hidden.size() == 1);
  CHECK(layout.hidden[0].name == "s");
  // The tensors are those of the first rank's file. The other files say nothing.
  for (const char* other : {"__1.metadata", "__0_0.distcp"}) {
    CHECK(ranks_layout(files, other).format.empty());
    CHECK(ranks_layout(files, other).metadata.empty());
  }
  auto whole = files;
  whole[".metadata"] = dcp_rows().metadata();
  CHECK(ranks_layout(whole, "__0.metadata").tensors.empty());
}

TEST_CASE("dcp: of a tensor that several ranks have whole, the first is shown and the others are cuts") {
  std::map<std::string, std::string> files;
  Checkpoint zero({1024, 2}), one({1024, 2});
  zero.shard({0, 0}, {1024, 2}, dcp_saved({1024, 2}, 9), "__0_0.distcp");
  one.shard({0, 0}, {1024, 2}, dcp_saved({1024, 2}, 9), "__1_0.distcp");
  files = zero.files;
  files.insert(one.files.begin(), one.files.end());
  files["__0.metadata"] = zero.metadata();
  files["__1.metadata"] = one.metadata();
  const Layout layout = ranks_layout(files, "__0.metadata");
  const FoundTensor& tensor = tensor_of(layout, "w");
  REQUIRE(tensor.parts.size() == 1);
  CHECK(layout.others[tensor.parts[0].file - 1] == "__0_0.distcp");
  const auto hidden = std::ranges::find(layout.hidden, "w", &HiddenTensor::name);
  REQUIRE(hidden != layout.hidden.end());
  CHECK(hidden->why == "several ranks have it; that of the first of them is shown");
  // The cut has the bytes of the tensor alone, so that an equal one is stored once.
  const auto cut = std::ranges::find_if(
      layout.cuts, [&](const TensorPart& part) { return layout.others[part.file - 1] == "__1_0.distcp"; });
  REQUIRE(cut != layout.cuts.end());
  CHECK(files.at("__1_0.distcp").substr(cut->offset, cut->length) ==
        files.at("__0_0.distcp").substr(tensor.parts[0].offset, tensor.parts[0].length));
}

TEST_CASE("dcp: a checkpoint that lacks ranks") {
  auto files = two_ranks();
  CHECK(must(parts_of_checkpoint({files["__0.metadata"], files["__1.metadata"]})).unfilled.empty());
  CHECK(must(parts_of_checkpoint({files["__0.metadata"]})).unfilled == "w");
  std::vector<std::string> names;
  for (const CheckpointFile& file : must(parts_of_checkpoint({files["__0.metadata"], files["__1.metadata"]})).files)
    names.push_back(file.name);
  CHECK(names == std::vector<std::string>{"__0_0.distcp", "__1_0.distcp", "s.distcp"});
  CHECK(must(parts_of_checkpoint({dcp_rows().metadata()})).unfilled.empty());

  const std::string second = files["__1.metadata"];
  files.erase("__1.metadata");
  const Layout layout = ranks_layout(files, "__0.metadata");
  REQUIRE(layout.hidden.size() == 1);
  CHECK(layout.hidden[0].name == "w");
  files["__2.metadata"] = second;
  const Layout alone = ranks_layout(files, "__2.metadata");
  REQUIRE(alone.metadata.size() == 1);
  CHECK(alone.metadata[0].second == "no __1.metadata of the rank before is beside it");
}

TEST_CASE("dcp: the names of a rank's files") {
  CHECK(checkpoint_rank("__0.metadata") == 0);
  CHECK(checkpoint_rank("__12.metadata") == 12);
  CHECK(checkpoint_rank("__12_0.distcp") == 12);
  for (const char* name : {".metadata", "__.metadata", "__01.metadata", "__1metadata", "_1.metadata",
                           "__1.metadata.tmp", "__1.distcp", "__1234567890.metadata", "__a.metadata"})
    CHECK_FALSE(checkpoint_rank(name));
  CHECK(rank_metadata(7) == "__7.metadata");
}

TEST_CASE("dcp: damaged metadata and shards never place a tensor outside of its file") {
  std::mt19937_64 random(test_seed());
  const std::vector<Checkpoint> all = {dcp_rows(), dcp_columns()};
  for (int round = 0; round < 2000; ++round) {
    Checkpoint checkpoint = all[random() % all.size()];
    std::string metadata = checkpoint.metadata();
    std::string& file = random() % 2 == 0 ? metadata : checkpoint.files.begin()->second;
    file[random() % file.size()] = static_cast<char>(random());
    if (random() % 4 == 0) file.resize(random() % file.size());
    MemoryGroup group(".metadata", metadata, checkpoint.files);
    const auto layout = parse_file("dir/.metadata", group);
    if (!layout.ok()) FAIL(layout.error().message);
    for (const FoundTensor& tensor : layout->tensors)
      for (const TensorPart& part : tensor.parts) {
        const std::string& name = layout->others.at(part.file - 1);
        REQUIRE(part.offset + part.length <= checkpoint.files.at(name).size());
      }
  }
}
