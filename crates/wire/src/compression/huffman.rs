//! The Huffman code (RFC 7541 5.2 and appendix B), decoded four bits at a time.

use super::CodingError;

/// Bits of each symbol's code. The code is canonical: of codes of one length the numerically next belongs to the next symbol, so the
/// lengths say all. The last symbol is EOS.
const LENGTHS: [u8; SYMBOL_COUNT] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28,
    28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6,
    6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7,
    8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7,
    15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24,
    23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23,
    23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26,
    26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20,
    21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27,
    27, 27, 26, 30,
];

const SYMBOL_COUNT: usize = 257;
const EOS: u16 = 256;

static CODES: [u32; SYMBOL_COUNT] = codes();
static MACHINE: [[Step; 16]; NODE_COUNT] = machine();

/// Inner nodes of a binary tree with a leaf for each symbol.
const NODE_COUNT: usize = SYMBOL_COUNT - 1;

/// In a [`Tree`], children from here on are leaves; the rest is the symbol.
const LEAF: u16 = 0x8000;

type Tree = [[u16; 2]; NODE_COUNT];

/// What four bits lead to.
#[derive(Clone, Copy)]
struct Step {
    next: u8,
    symbol: u8,
    has_symbol: bool,
    is_failure: bool,
}

/// Appends the decoded bytes to `out`.
pub(super) fn decode(input: &[u8], out: &mut Vec<u8>) -> Result<(), CodingError> {
    let mut node = 0_u8;
    for &byte in input {
        for nibble in [byte >> 4, byte & 15] {
            let step = MACHINE[usize::from(node)][usize::from(nibble)];
            if step.is_failure {
                return Err(CodingError::Invalid("EOS within a Huffman-coded string"));
            }
            if step.has_symbol {
                out.push(step.symbol);
            }
            node = step.next;
        }
    }
    // RFC 7541 5.2: padding is the beginning of EOS, all ones, and shorter than a byte.
    if IS_PADDING[usize::from(node)] {
        Ok(())
    } else {
        Err(CodingError::Invalid("invalid padding in a Huffman-coded string"))
    }
}

/// Appends the coded bytes to `out`.
pub(super) fn encode(input: &[u8], out: &mut Vec<u8>) {
    let (mut bits, mut bit_count) = (0_u64, 0_u32);
    for &byte in input {
        let length = u32::from(LENGTHS[usize::from(byte)]);
        bits = bits << length | u64::from(CODES[usize::from(byte)]);
        bit_count += length;
        while bit_count >= 8 {
            bit_count -= 8;
            out.push((bits >> bit_count) as u8);
        }
    }
    if bit_count > 0 {
        let padding = 8 - bit_count;
        out.push((bits << padding) as u8 | ((1_u16 << padding) - 1) as u8);
    }
}

/// Length of the coded bytes.
pub(super) fn encoded_bytes(input: &[u8]) -> usize {
    let bits: usize = input.iter().map(|&byte| usize::from(LENGTHS[usize::from(byte)])).sum();
    bits.div_ceil(8)
}

const fn codes() -> [u32; SYMBOL_COUNT] {
    let mut codes = [0; SYMBOL_COUNT];
    let mut code = 0;
    let mut length = 1;
    while length <= 30 {
        let mut symbol = 0;
        while symbol < SYMBOL_COUNT {
            if LENGTHS[symbol] == length {
                codes[symbol] = code;
                code += 1;
            }
            symbol += 1;
        }
        code <<= 1;
        length += 1;
    }
    codes
}

const fn tree() -> Tree {
    let codes = codes();
    let mut tree = [[0; 2]; NODE_COUNT];
    let mut node_count = 1;
    let mut symbol = 0;
    while symbol < SYMBOL_COUNT {
        let mut node = 0;
        let mut bit = LENGTHS[symbol];
        while bit > 0 {
            bit -= 1;
            let side = (codes[symbol] >> bit & 1) as usize;
            if bit == 0 {
                tree[node][side] = LEAF | symbol as u16;
            } else if tree[node][side] == 0 {
                tree[node][side] = node_count;
                node_count += 1;
            }
            node = (tree[node][side] & !LEAF) as usize % NODE_COUNT;
        }
        symbol += 1;
    }
    tree
}

const fn machine() -> [[Step; 16]; NODE_COUNT] {
    let tree = tree();
    let nothing = Step { next: 0, symbol: 0, has_symbol: false, is_failure: false };
    let mut machine = [[nothing; 16]; NODE_COUNT];
    let mut node = 0;
    while node < NODE_COUNT {
        let mut nibble = 0;
        while nibble < 16 {
            machine[node][nibble] = walk(&tree, node, nibble);
            nibble += 1;
        }
        node += 1;
    }
    machine
}

/// No code is shorter than five bits, so four of them end at most one symbol.
const fn walk(tree: &Tree, node: usize, nibble: usize) -> Step {
    let mut step = Step { next: 0, symbol: 0, has_symbol: false, is_failure: false };
    let mut node = node;
    let mut bit = 4;
    while bit > 0 {
        bit -= 1;
        let child = tree[node][nibble >> bit & 1];
        if child & LEAF == 0 {
            node = child as usize;
        } else {
            step.is_failure |= child & !LEAF == EOS;
            step.symbol = child as u8;
            step.has_symbol = true;
            node = 0;
        }
    }
    step.next = node as u8;
    step
}

/// Nodes that fewer than eight ones lead to.
static IS_PADDING: [bool; NODE_COUNT] = {
    let tree = tree();
    let mut is_padding = [false; NODE_COUNT];
    let (mut node, mut depth) = (0, 0);
    while depth < 8 {
        is_padding[node] = true;
        node = tree[node][1] as usize;
        depth += 1;
    }
    is_padding
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_comes_back() {
        let all: Vec<u8> = (0..=255).collect();
        for input in [&all[..], b"", b"a", b"www.example.com", b"\xff\xff\xff"] {
            let (mut coded, mut back) = (Vec::new(), Vec::new());
            encode(input, &mut coded);
            assert_eq!(coded.len(), encoded_bytes(input));
            decode(&coded, &mut back).unwrap();
            assert_eq!(back, input);
        }
    }

    /// RFC 7541 C.4.1.
    #[test]
    fn the_code_is_the_rfc_s() {
        let mut coded = Vec::new();
        encode(b"www.example.com", &mut coded);
        assert_eq!(coded, [0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff]);
    }

    #[test]
    fn eos_and_wrong_padding_are_refused() {
        // EOS; zeros as padding; a whole byte of padding.
        for input in [&[0xff, 0xff, 0xff, 0xff][..], &[0x18], &[0x1f, 0xff]] {
            assert!(decode(input, &mut Vec::new()).is_err(), "{input:x?}");
        }
        assert!(decode(&[0x1f], &mut Vec::new()).is_ok());
    }
}
