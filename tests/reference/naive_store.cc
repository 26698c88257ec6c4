#include "reference/naive_store.h"

#include <algorithm>
#include <sstream>

namespace weft::reference {

std::string encode(const NaiveContent& content) {
  std::ostringstream out;
  out << content.size() << ' ';
  for (const NaiveFile& file : content) {
    out << file.tensors.size() << ' ';
    for (const NaiveTensor& tensor : file.tensors) {
      out << int{tensor.dtype} << ' ' << tensor.shape.size() << ' ';
      for (std::uint64_t dimension : tensor.shape) out << dimension << ' ';
      out << tensor.bytes.size() << ':' << tensor.bytes;
    }
  }
  return out.str();
}

std::optional<NaiveContent> decode(const std::string& text) {
  std::istringstream in(text);
  std::size_t files = 0;
  in >> files;
  if (!in || files > text.size()) return std::nullopt;
  NaiveContent content(files);
  for (NaiveFile& file : content) {
    std::size_t tensors = 0;
    in >> tensors;
    if (!in || tensors > text.size()) return std::nullopt;
    file.tensors.resize(tensors);
    for (NaiveTensor& tensor : file.tensors) {
      int dtype = 0;
      std::size_t dimensions = 0;
      std::size_t length = 0;
      in >> dtype >> dimensions;
      if (!in || dimensions > 64) return std::nullopt;
      tensor.dtype = static_cast<std::uint8_t>(dtype);
      tensor.shape.resize(dimensions);
      for (std::uint64_t& dimension : tensor.shape) in >> dimension;
      in >> length;
      if (!in || in.get() != ':' || length > text.size()) return std::nullopt;
      tensor.bytes.resize(length);
      in.read(tensor.bytes.data(), static_cast<std::streamsize>(length));
      if (!in) return std::nullopt;
    }
  }
  return content;
}

std::pair<std::uint64_t, bool> NaiveStore::publish(NaiveVersion version) {
  std::uint64_t newest = latest(version.model);
  if (newest != 0 && find(version.model, newest)->content == version.content) return {newest, false};
  std::uint64_t number = 1;
  for (const NaiveVersion& other : versions_) {
    if (other.model == version.model) number = std::max(number, other.number + 1);
  }
  version.number = number;
  version.born = ++clock_;
  versions_.push_back(std::move(version));
  return {number, true};
}

void NaiveStore::remove(const std::string& model, std::uint64_t number) {
  for (NaiveVersion& version : versions_) {
    if (version.model != model || version.number != number) continue;
    version.removed = true;
    version.died = ++clock_;
  }
  std::erase_if(tags_[model], [&](const auto& tag) { return tag.second == number; });
}

const NaiveVersion* NaiveStore::find(const std::string& model, std::uint64_t number) const {
  for (const NaiveVersion& version : versions_) {
    if (version.model == model && version.number == number) return &version;
  }
  return nullptr;
}

std::vector<std::string> NaiveStore::live_models() const {
  std::set<std::string> names;
  for (const NaiveVersion& version : versions_) {
    if (!version.removed) names.insert(version.model);
  }
  return {names.begin(), names.end()};
}

std::uint64_t NaiveStore::latest(const std::string& model) const {
  std::uint64_t number = 0;
  for (const NaiveVersion& version : versions_) {
    if (version.model == model && !version.removed) number = std::max(number, version.number);
  }
  return number;
}

std::uint64_t NaiveStore::unique_bytes() const {
  std::set<std::string> contents;
  std::uint64_t bytes = 0;
  for (const NaiveVersion& version : versions_) {
    if (version.removed) continue;
    for (const NaiveFile& file : version.content) {
      for (const NaiveTensor& tensor : file.tensors) {
        if (contents.insert(tensor.bytes).second) bytes += tensor.bytes.size();
      }
    }
  }
  return bytes;
}

std::uint64_t NaiveStore::owned_bytes(std::size_t index, std::size_t file) const {
  std::set<std::string> earlier;
  for (std::size_t v = 0; v < index; ++v) {
    if (versions_[v].removed) continue;
    for (const NaiveFile& other : versions_[v].content) {
      for (const NaiveTensor& tensor : other.tensors) earlier.insert(tensor.bytes);
    }
  }
  const NaiveContent& content = versions_[index].content;
  for (std::size_t f = 0; f < file; ++f) {
    for (const NaiveTensor& tensor : content[f].tensors) earlier.insert(tensor.bytes);
  }
  std::uint64_t bytes = 0;
  for (const NaiveTensor& tensor : content[file].tensors) {
    if (earlier.insert(tensor.bytes).second) bytes += tensor.bytes.size();
  }
  return bytes;
}

std::uint64_t NaiveStore::view_links(const NaiveTensor& tensor) const {
  std::uint64_t links = 0;
  for (const NaiveVersion& version : versions_) {
    if (version.removed) continue;
    for (const NaiveFile& file : version.content) {
      for (const NaiveTensor& other : file.tensors) {
        if (other.bytes == tensor.bytes && other.dtype == tensor.dtype && other.shape == tensor.shape)
          links += 2;  // in tensors/ and in layers/
      }
    }
  }
  return links;
}

}  // namespace weft::reference
