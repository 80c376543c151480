// Plotly is four fifths of the page, and a quarter of that when compressed. The policy of the page knows its
// hash, so that what is unpacked may run.

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

const library = document.createElement("script");
library.textContent = await unpacked(document.getElementById("plotly").textContent);
document.head.append(library);

