#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <random>

#include "allocation.h"
#include "base/limits.h"
#include "format/torch/torch_globals.h"
#include "torch_files.h"

using namespace weft;
using namespace weft::testing;

namespace {

Layout of(const std::string& value) {
  return parsed_torch(torch_archive(value));
}

std::string why_hidden(const std::string& tensor) {
  const Layout layout = of(p_dict({{"w", tensor}, {"good", p_tensor(p_storage("1"), 0, {2}, {1})}}));
  CHECK(layout.format == "torch zip");
  CHECK(layout.tensors.size() == 1);
  REQUIRE(layout.hidden.size() == 1);
  CHECK(layout.hidden[0].name == "w");
  return layout.hidden[0].why;
}

}  // namespace

TEST_CASE("torch: tensors of a state dict lie in their storages") {
  const std::string bytes = torch_archive(p_dict(
      {{"a.weight", p_tensor(p_storage("0"), 0, {4, 6}, {6, 1})}, {"a.bias", p_tensor(p_storage("1"), 0, {2}, {1})}}));
  const Layout layout = parsed_torch(bytes);
  CHECK(layout.format == "torch zip");
  REQUIRE(names_of(layout) == std::vector<std::string>{"a.weight", "a.bias"});
  CHECK(layout.tensors[0].dtype == DType::f32);
  CHECK(layout.tensors[0].shape == Shape{4, 6});
  CHECK(layout.tensors[0].strides.empty());
  CHECK(range_of(layout.tensors[0]).offset == bytes.find("####"));
  CHECK(range_of(layout.tensors[0]).length == 96);
  CHECK(range_of(layout.tensors[1]).offset == bytes.find("@@@@@@@@"));
  CHECK(layout.cuts.size() == 3);
  CHECK(layout.hidden.empty());
}

TEST_CASE("torch: views, tied, transposed and expanded tensors") {
  const std::string storage = p_storage("0");
  const Layout layout = of(p_dict({{"whole", p_tensor(storage, 0, {24}, {1})},
                                   {"tied", p_tensor(storage, 0, {24}, {1})},
                                   {"row", p_tensor(storage, 6, {6}, {1})},
                                   {"transposed", p_tensor(storage, 0, {6, 4}, {1, 6})},
                                   {"column", p_tensor(storage, 1, {4}, {6})},
                                   {"expanded", p_tensor(storage, 23, {5, 1}, {0, 1})},
                                   {"none", p_tensor(storage, 99, {0, 3}, {3, 1})}}));
  REQUIRE(layout.tensors.size() == 7);
  std::map<std::string, FoundTensor> by_name;
  for (const FoundTensor& tensor : layout.tensors) by_name[tensor.name] = tensor;
  const std::uint64_t begin = range_of(by_name["whole"]).offset;
  CHECK(range_of(by_name["tied"]) == Range{begin, 96});
  CHECK(range_of(by_name["row"]) == Range{begin + 24, 24});
  CHECK(by_name["row"].strides.empty());
  CHECK(range_of(by_name["transposed"]) == Range{begin, 96});
  CHECK(by_name["transposed"].strides == Strides{1, 6});
  CHECK(range_of(by_name["column"]) == Range{begin + 4, 76});
  CHECK(by_name["column"].strides == Strides{6});
  CHECK(range_of(by_name["expanded"]) == Range{begin + 92, 4});
  CHECK(by_name["expanded"].strides == Strides{0, 1});
  CHECK(by_name["none"].parts.empty());
}

TEST_CASE("torch: names of nested checkpoints, modules and second tensors") {
  const std::string w = p_tensor(p_storage("1"), 0, {2}, {1});
  const std::string ordered = p_global("collections", "OrderedDict") + ")R" + p_text("k") + w + "s";
  const std::string module = p_global("m", "Net") + ")\x81" +
                             p_dict({{"_parameters", p_dict({{"p", w}})}, {"_modules", p_dict({{"l", ordered}})}}) +
                             "b";
  const Layout layout = of(p_dict({{"state", ordered},
                                   {"list", "](" + w + w + "e"},
                                   {"net", module},
                                   {"parameter", p_call(p_global("torch._utils", "_rebuild_parameter"), {w, "\x88"})},
                                   {"state.k", w},
                                   {"storage", p_storage("1", "LongStorage")}}));
  std::vector<std::string> names = names_of(layout);
  std::ranges::sort(names);
  CHECK(names == std::vector<std::string>{"list.0", "list.1", "net.l.k", "net.p", "parameter", "state.k", "state.k~2",
                                          "storage"});
  CHECK(names_of(of(w)) == std::vector<std::string>{"tensor"});
  CHECK(names_of(of("}(K\7" + w + p_tuple({p_small(1), p_text("x")}) + w + "u")) ==
        std::vector<std::string>{"7", "1_x"});
}

TEST_CASE("torch: a tensor that weft cannot show is hidden, and the others are shown") {
  CHECK(why_hidden(p_tensor(p_storage("9"), 0, {2}, {1})) == "its storage is not in the file");
  CHECK(why_hidden(p_tensor(p_storage("0", "QUInt4x2Storage"), 0, {2}, {1})) ==
        "a type that weft lacks, torch.QUInt4x2Storage");
  CHECK(why_hidden(p_tensor(p_storage("0"), 0, {25}, {1})) == "it ends after its storage of 96 bytes");
  CHECK(why_hidden(p_tensor(p_storage("0"), 24, {1}, {1})) == "it ends after its storage of 96 bytes");
  CHECK(why_hidden(p_tensor(p_storage("0"), 0, {2, 2}, {65535, 1})) == "it ends after its storage of 96 bytes");
  CHECK(why_hidden(p_tensor(p_storage("0"), 0, {2, 2}, {1})) == "a tensor with other arguments than PyTorch writes");
  CHECK(why_hidden(p_tensor(p_text("0"), 0, {2}, {1})) == "its storage is not in the file");
  CHECK(why_hidden(p_tensor(p_storage("0"), 0, {2}, {1}, p_dict({{"conj", "\x88"}}))) ==
        "its values are conjugated or negated when they are read");
  const std::string rebuild = p_global("torch._utils", "_rebuild_tensor_v2");
  const auto with = [&](const std::string& offset, const std::string& shape, const std::string& strides) {
    return why_hidden(p_call(rebuild, {p_storage("0"), offset, shape, strides, "\x89", "N"}));
  };
  CHECK(with("K"
             "\1",
             p_tuple({p_int(1ULL << 62U), p_int(1ULL << 62U)}), p_tuple({"K\1", "K\1"}))
            .find("2^64") != std::string::npos);
  CHECK(with(p_small(0), p_tuple({p_int(1ULL << 61U)}), p_tuple({p_small(0)})).find("too large") != std::string::npos);
  CHECK(with(p_int(1ULL << 62U), p_numbers({2}), p_numbers({1})).find("it ends after") != std::string::npos);
  CHECK(with("J" + le32(UINT32_MAX), p_numbers({2}), p_numbers({1})).find("other arguments") != std::string::npos);
  CHECK(with(p_small(0), p_numbers({2}), p_tuple({"J" + le32(UINT32_MAX)})).find("other arguments") !=
        std::string::npos);
  const Layout compressed = parsed_torch(zip_file(
      {{"m/data.pkl", p_file(p_dict({{"w", p_tensor(p_storage("0"), 0, {2}, {1})}}))}, {"m/data/0", "12345678", 8}}));
  REQUIRE(compressed.hidden.size() == 1);
  CHECK(compressed.hidden[0].why == "compressed");
}

TEST_CASE("torch: types of the third version of tensors, and arrays of numpy") {
  const auto typed = [&](std::string_view type) {
    return p_call(p_global("torch._utils", "_rebuild_tensor_v3"),
                  {p_storage("0", "UntypedStorage"), p_small(1), p_numbers({2}), p_numbers({1}), "\x89", "N",
                   p_global("torch", type)});
  };
  const Layout layout = of(p_dict({{"w", typed("uint16")}, {"x", typed("complex32")}}));
  REQUIRE(layout.tensors.size() == 1);
  CHECK(layout.tensors[0].dtype == DType::u16);
  CHECK(range_of(layout.tensors[0]).length == 4);
  REQUIRE(layout.hidden.size() == 1);
  CHECK(layout.hidden[0].why == "a type that weft lacks, torch.complex32");
  CHECK(layout.hidden[0].bytes == 96);

  const std::string dtype =
      p_call(p_global("numpy", "dtype"), {p_text("f4")}) + p_tuple({p_small(3), p_text("<"), "N", "N", "N"}) + "b";
  const auto array = [&](const std::string& bytes) {
    return p_global("numpy._core.multiarray", "_reconstruct") + ")R" +
           p_tuple({p_small(1), p_numbers({2, 3}), dtype, "\x88", bytes}) + "b";
  };
  const std::string bytes =
      torch_archive(p_dict({{"n", array("C\x18" + std::string(24, 'n'))}, {"t", array(p_text("t"))}}));
  const Layout numpy = parsed_torch(bytes);
  REQUIRE(numpy.tensors.size() == 1);
  CHECK(numpy.tensors[0].strides == Strides{1, 2});
  CHECK(range_of(numpy.tensors[0]).offset == bytes.find("nnnn"));
  REQUIRE(numpy.hidden.size() == 1);
  CHECK(numpy.hidden[0].why == "an array of numpy that is escaped as text, or has objects");
}

TEST_CASE("torch: sparse tensors, and tensors of a class of their own") {
  const std::string w = p_tensor(p_storage("1"), 0, {2}, {1});
  const std::string layout_of = p_call(p_global("torch.serialization", "_get_layout"), {p_text("torch.sparse_coo")});
  const std::string size = p_call(p_global("torch", "Size"), {p_numbers({4})});
  const std::string sparse_of = p_global("torch._utils", "_rebuild_sparse_tensor");
  const auto sparse = [&](const std::string& parts) { return p_tuple({layout_of, parts}); };
  const std::string coordinates = sparse(p_tuple({w, w, size, "\x88"}));
  const std::string compressed = sparse(p_tuple({w, w, w, size}));
  const auto typed = [&](const std::string& function, const std::string& arguments) {
    return p_call(p_global("torch._tensor", "_rebuild_from_type_v2"), {function, p_global("m", "Own"), arguments, "}"});
  };
  const auto names = [&](const std::string& value) {
    std::vector<std::string> found = names_of(of(p_dict({{"t", value}})));
    std::ranges::sort(found);
    return found;
  };
  CHECK(names(sparse_of + coordinates + "R") == std::vector<std::string>{"t.indices", "t.values"});
  CHECK(names(typed(sparse_of, coordinates)) == std::vector<std::string>{"t.indices", "t.values"});
  CHECK(names(typed(sparse_of, compressed)) ==
        std::vector<std::string>{"t.compressed_indices", "t.plain_indices", "t.values"});
  const std::string rebuild = p_global("torch._utils", "_rebuild_tensor_v2");
  const std::string arguments = p_tuple({p_storage("0"), p_small(0), p_numbers({2}), p_numbers({1}), "\x89", "N"});
  CHECK(names(typed(rebuild, arguments)) == std::vector<std::string>{"t"});
  CHECK(names(typed(p_global("torch._utils", "_rebuild_parameter"), p_tuple({w, "\x88", "N"}))) ==
        std::vector<std::string>{"t"});
  CHECK(names(typed(p_global("torch._tensor", "_rebuild_from_type_v2"),
                    p_tuple({sparse_of, p_global("m", "Own"), coordinates, "}"}))) ==
        std::vector<std::string>{"t.indices", "t.values"});
  // A call whose arguments are the call itself.
  const std::string own = "]" + std::string("q\0", 2) + "(" + p_global("torch._tensor", "_rebuild_from_type_v2") +
                          "Nh" + std::string(1, '\0') + "Ne";
  CHECK(why_opaque(torch_archive(p_global("torch._tensor", "_rebuild_from_type_v2") + own + "R")) ==
        "pickle: its values are nested too deeply");
}

TEST_CASE("torch: a quantized tensor with a scale for each channel has its scales and zero points beside it") {
  const std::string own = p_tensor(p_storage("1"), 0, {2}, {1}), scheme = p_global("torch", "per_channel_affine");
  const auto names = [](const std::string& type, const std::vector<std::string>& quantizer) {
    const std::vector<std::string> arguments = {
        p_storage("0", type), p_small(0), p_numbers({2, 3}), p_numbers({3, 1}), p_tuple(quantizer), "\x89", "N"};
    std::vector<std::string> found =
        names_of(of(p_dict({{"q", p_call(p_global("torch._utils", "_rebuild_qtensor"), arguments)}})));
    std::ranges::sort(found);
    return found;
  };
  const std::vector<std::string> all = {"q", "q.scales", "q.zero_points"};
  CHECK(names("QInt8Storage", {scheme, own, own, p_small(0)}) == all);
  // Two elements in each byte: weft lacks the type, and the scales are tensors all the same.
  CHECK(names("QUInt4x2Storage", {scheme, own, own, p_small(0)}) == std::vector<std::string>{all[1], all[2]});
  // Numbers are no tensors: one scale for all elements, and the lists of old files.
  CHECK(names("QInt8Storage", {scheme, p_small(1), p_small(0)}) == std::vector<std::string>{"q"});
  CHECK(names("QInt8Storage", {scheme, p_numbers({1, 1}), p_numbers({0, 0}), p_small(0)}) ==
        std::vector<std::string>{"q"});
}

TEST_CASE("torch: globals are listed, those beyond weights_only apart, and nothing runs") {
  const std::string system = p_call(p_global("os", "system"), {p_text("touch /tmp/weft-ran")});
  const Layout layout = of(p_dict({{"w", p_tensor(p_storage("0"), 0, {2}, {1})}, {"evil", system}}));
  CHECK(names_of(layout) == std::vector<std::string>{"w"});
  const auto metadata = metadata_of(layout);
  CHECK(metadata.at(std::string(kGlobals)) ==
        "torch._utils._rebuild_tensor_v2 torch.FloatStorage collections.OrderedDict os.system");
  CHECK(metadata.at(std::string(kOtherGlobals)) == "os.system");
  CHECK(metadata_of(of(p_tensor(p_storage("0"), 0, {2}, {1}))).size() == 1);
  const Layout broken = of(system + "\xff");
  CHECK(broken.format.empty());
  CHECK(metadata_of(broken).at(std::string(kOtherGlobals)) == "os.system");
  CHECK(metadata_of(broken).count(std::string(kNoTensors)) == 1);
  CHECK(broken.cuts.size() == 3);
  CHECK(metadata_of(of(p_text("a b") + p_text("c") + "\x93")).at(std::string(kOtherGlobals)) == "a\\x20b.c");
  // Globals of a second pickle, and of an instance that is dropped before a broken tail.
  CHECK(metadata_of(of("N." + system)).at(std::string(kOtherGlobals)) == "os.system");
  CHECK(metadata_of(of("(iposix\nsystem\n0\x82\1")).at(std::string(kOtherGlobals)) ==
        "posix.system copyreg.extension_1");
  CHECK(is_allowed_global("torch.FloatStorage"));
  CHECK_FALSE(is_allowed_global("torch.nn.modules.linear.Linear"));
  CHECK_FALSE(is_allowed_global(""));
}

TEST_CASE("torch: globals are listed under any name, and if the checksums of members are wrong") {
  const std::string system = p_call(p_global("os", "system"), {p_text("true")});
  std::string archive = torch_archive(system);
  // Loaders that compare no checksum run this pickle. weft reads no bytes of members to compare them either.
  for (const auto& [record, at] : {std::pair{"PK\3\4", 14}, std::pair{"PK\1\2", 16}})
    for (std::size_t found = archive.find(record); found != archive.npos; found = archive.find(record, found + 1))
      archive.replace(found + static_cast<std::size_t>(at), 4, le32(7));
  for (const char* name : {"m.pt", "m.npz", "weights.jpg", "config.json", "data"}) {
    CAPTURE(name);
    MemorySource source(archive);
    const Layout layout = must(parse_file("place", name, source));
    CHECK(layout.format == "torch zip");
    CHECK(metadata_of(layout).at(std::string(kOtherGlobals)) == "os.system");
  }
}

TEST_CASE("torch: files that cannot be read are opaque, with the reason") {
  const std::string data = p_file("N");
  CHECK(why_opaque(zip_file({{"a/data.pkl", data}, {"b/data.pkl", data}})) ==
        "expected one data.pkl in the archive, got 2");
  CHECK(why_opaque(zip_file({{"a/data.pkl", data, 8}})) == "expected a/data.pkl uncompressed, got it compressed");
  CHECK(why_opaque(torch_archive("N", {{"m/byteorder", "big"}})).starts_with("expected a little-endian file"));
  CHECK(why_opaque(torch_archive("N", {{"m/byteorder", "bigger"}})).starts_with("expected a little-endian file"));
  CHECK(parsed_torch(torch_archive("N", {{"m/byteorder", "little"}})).format == "torch zip");
  CHECK(why_opaque(zip_file({{"data.pkl", ""}})).starts_with("pickle: expected 1 bytes at 0"));
  CHECK(parsed_torch(zip_file({{"data.pkl", data}})).format == "torch zip");
  CHECK(parsed_torch(zip_file({{"a/b/data.pkl", data}})).format.empty());
}

TEST_CASE("torch: values that refer to one another many times, deeply or in circles") {
  // 200 lists, each of which has the last one twice.
  std::string shared = "]";
  for (int i = 0; i < 200; ++i) {
    const std::string number(1, static_cast<char>(i));
    shared += "q" + number + "](h" + number + "h" + number + "e";
  }
  const std::string nested = std::string(100'000, ']') + std::string(99'999, 'a');
  const auto why_with_bounds = [](const std::string& value) {
    reset_allocations();
    const std::string why = why_opaque(torch_archive(value));
    CHECK(allocations().total <= (64U << 10U) + 128 * value.size());
    return why;
  };
  CHECK(why_with_bounds(shared) == "pickle: its values are shared too often");
  CHECK(why_with_bounds(nested) == "pickle: its values are nested too deeply");
  const std::string zero(1, '\0');
  const Layout circle =
      of("}q" + zero + p_text("self") + "h" + zero + "s" + p_text("w") + p_tensor(p_storage("1"), 0, {2}, {1}) + "s");
  CHECK(names_of(circle) == std::vector<std::string>{"w"});
}

TEST_CASE("torch: a name longer than weft allows hides its tensor") {
  const std::string w = p_tensor(p_storage("1"), 0, {2}, {1});
  const Layout layout = of(p_dict({{std::string(5000, 'n'), w}, {"w", w}, {"\xff", w}}));
  CHECK(names_of(layout) == std::vector<std::string>{"w"});
  REQUIRE(layout.hidden.size() == 2);
  CHECK(layout.hidden[0].why.find("expected a name of at most 4096 bytes") != std::string::npos);
}

TEST_CASE("torch: changed pickles give sound layouts") {
  const std::string good = p_file(
      p_dict({{"a", p_tensor(p_storage("0"), 0, {4, 6}, {6, 1})}, {"b", p_tensor(p_storage("1"), 0, {2}, {1})}}));
  const std::uint64_t seed = test_seed();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 10'000; ++round) {
    std::string bytes = good;
    for (std::uint64_t changes = 1 + random() % 4; changes-- > 0;)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    parsed_torch(
        zip_file({{"m/data.pkl", bytes}, {"m/data/0", std::string(96, '#')}, {"m/data/1", std::string(8, '@')}}));
  }
}
